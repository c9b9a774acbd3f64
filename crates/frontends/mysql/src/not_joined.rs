//! The reasons for which a statement is relayed.

/// The reason for which a statement is relayed.
#[derive(Debug)]
pub(crate) enum NotJoined {
    /// The statement is no write of one row.
    NoWrite,
    /// A write is relayed for this reason.
    For(&'static str),
}
