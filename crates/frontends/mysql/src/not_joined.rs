//! The reasons for which a statement is relayed.

/// The reason why a statement that is not a single-row write is not written as a row.
pub(crate) const NO_ROW: &str = "it is no INSERT of one row of plain values";

/// The reason for which a statement is relayed.
#[derive(Debug)]
pub(crate) enum NotJoined {
    /// The statement is not a write of one row.
    NoWrite,
    /// A write is relayed for this reason.
    For(&'static str),
}

impl NotJoined {
    /// Returns the reason why the statement is not written as a row either.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NoWrite => NO_ROW,
            Self::For(reason) => reason,
        }
    }
}
