//! The PostgreSQL behind the stand-in.

/// What connections need to know.
#[derive(Debug)]
pub(super) struct Upstream {
    /// The database behind, for what has to be looked up.
    pub(super) url: String,
    /// Its `host:port`.
    pub(super) address: String,
    pub(super) version: String,
    pub(super) reports: bool,
}
