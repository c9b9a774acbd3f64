//! Knowledge of tables and statements that the answers to a round trip have proven wrong.

use super::codes::ErrorMeaning;

/// Knowledge about tables and statements that a round trip has proven wrong.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// True if a description is no longer correct: the whole batch is planned again.
    pub(crate) stale: bool,
    /// Versions of tables that are not as they were described.
    pub(crate) changed: Vec<u64>,
    /// Versions of tables that are as they were described, but of which a further change might not
    /// be seen.
    pub(crate) outdated: Vec<u64>,
    /// Versions of tables with a catalog change that does not matter here: their checks are
    /// prepared again.
    pub(crate) told: Vec<u64>,
    /// True if the form that reports failing rows did not report one that failed.
    pub(crate) missed: bool,
    /// Versions of tables whose guards fail even though the table has not changed.
    pub(crate) unguarded: Vec<u64>,
    /// True if the server does not know the prepared statements.
    pub(crate) statements_gone: bool,
    /// True if the server shuts down.
    pub(crate) leave: bool,
}

impl Findings {
    /// Records what an error means beyond the units that it failed.
    pub(crate) fn note(&mut self, meaning: ErrorMeaning) {
        match meaning {
            ErrorMeaning::Leave => self.leave = true,
            ErrorMeaning::StatementsGone => (self.statements_gone, self.stale) = (true, true),
            ErrorMeaning::Changed(version) => {
                self.stale = true;
                self.changed.push(version);
            }
            ErrorMeaning::Unguarded(version) => self.unguarded.push(version),
            ErrorMeaning::Again
            | ErrorMeaning::Unknown
            | ErrorMeaning::TableLocked(_)
            | ErrorMeaning::Own => {}
        }
    }
}
