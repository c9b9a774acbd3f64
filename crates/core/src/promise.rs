//! The promises that Windrow makes to clients on every database.
//!
//! The list is closed and short, because documentation, tests and users read it. A sink declares in
//! its [`crate::Profile`] the promises that it cannot keep. The conformance suite tests all others.

use std::fmt;

/// A promise to every client, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Promise {
    /// Every write gets its own row count.
    Counts,
    /// Every refused write gets its own error, and affects no other write.
    Errors,
    /// A write returns its own values, including those that the database generated.
    Returned,
    /// A unit of several writes is committed as a whole or not at all.
    Atomic,
    /// Success is reported after the commit.
    Committed,
    /// An outcome that cannot be known is reported as unknown.
    Unknown,
    /// Writes of one client to one row keep their order.
    Order,
    /// Values keep every digit.
    Values,
    /// The database enforces unique keys other than the primary key.
    Unique,
    /// The database enforces foreign keys.
    ForeignKeys,
    /// A write that waits for another session's lock delays no other write.
    Locks,
}

impl Promise {
    /// All promises, in their order.
    pub const ALL: [Self; 11] = [
        Self::Counts,
        Self::Errors,
        Self::Returned,
        Self::Atomic,
        Self::Committed,
        Self::Unknown,
        Self::Order,
        Self::Values,
        Self::Unique,
        Self::ForeignKeys,
        Self::Locks,
    ];

    /// Returns the short name of the promise, for tables and lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counts => "exact counts",
            Self::Errors => "own errors",
            Self::Returned => "generated values",
            Self::Atomic => "atomic units",
            Self::Committed => "committed",
            Self::Unknown => "unknown outcomes",
            Self::Order => "order",
            Self::Values => "exact values",
            Self::Unique => "unique keys",
            Self::ForeignKeys => "foreign keys",
            Self::Locks => "locks of others",
        }
    }

    /// Returns the promise as a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Counts => {
                "Every write gets its own row count: 0 for updates and deletes of missing rows."
            }
            Self::Errors => {
                "A refused write gets its own error, and affects no other write of its batch."
            }
            Self::Returned => "A write returns its own row, with generated values.",
            Self::Atomic => "A unit of several writes is committed as a whole or not at all.",
            Self::Committed => {
                "Success is reported after the commit: the next read sees the row, which survives whatever the database survives."
            }
            Self::Unknown => {
                "If the database's answer is lost, the client gets an unknown outcome, never a false success; nothing is executed twice."
            }
            Self::Order => "Writes of one client to one row keep their order.",
            Self::Values => {
                "Values keep every digit, or the write is refused; only floating-point columns round."
            }
            Self::Unique => "Unique keys besides the primary key are kept.",
            Self::ForeignKeys => "Foreign keys are kept.",
            Self::Locks => {
                "A write that waits for another session's lock continues alone and does not delay its batch."
            }
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A promise that a sink cannot keep, or not wholly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limitation {
    /// The promise that is not kept.
    pub promise: Promise,
    /// The reason, and what happens instead: one sentence, for users.
    pub why: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_in_order() {
        let mut names: Vec<_> = Promise::ALL.iter().map(|p| p.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Promise::ALL.len());
        assert!(Promise::ALL.is_sorted());
        for promise in Promise::ALL {
            assert!(promise.sentence().ends_with('.'), "{promise}");
        }
    }
}
