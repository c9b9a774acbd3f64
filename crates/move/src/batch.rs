//! The outcome of one batch, whichever way it went.

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Rows that were found; 0: there are none that nobody holds.
    pub(super) picked: u64,
    /// Rows that are in their destinations.
    pub(super) moved: u64,
    /// Rows that went to the dead letters.
    pub(super) rejected: u64,
    /// There was no other row that nobody held.
    pub(super) last: bool,
}
