//! What Windrow promises, whatever the database, and what a database may lack of it.
//!
//! The list is closed and short, because documentation, tests and users read it. A sink that cannot
//! keep a promise says so in its [`crate::Profile`]; whatever it does not name there, it keeps, and
//! the conformance suite tries it.

use std::fmt;

/// A promise to every client, in the order of what weighs most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Promise {
    /// Every write is told its own row count.
    Counts,
    /// Every write that is refused is told its own error, and spoils no other write.
    Errors,
    /// What a write gives back is its own, values that the database generated included.
    Returned,
    /// A unit of several writes is all or nothing.
    Atomic,
    /// A success is told after the commit.
    Committed,
    /// An outcome that cannot be known is told as that.
    Unknown,
    /// Writes of one client to one row keep their order.
    Order,
    /// Values keep every digit.
    Values,
    /// Unique keys other than the primary key are kept.
    Unique,
    /// Foreign keys are kept.
    ForeignKeys,
    /// Whoever waits for a lock of somebody else holds up nobody.
    Locks,
}

impl Promise {
    /// All of them, in their order.
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

    /// Its short name, for tables and lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counts => "exact counts",
            Self::Errors => "own errors",
            Self::Returned => "generated values",
            Self::Atomic => "atomic units",
            Self::Committed => "committed",
            Self::Unknown => "unknown is told",
            Self::Order => "order",
            Self::Values => "exact values",
            Self::Unique => "unique keys",
            Self::ForeignKeys => "foreign keys",
            Self::Locks => "foreign locks",
        }
    }

    /// What is promised, in one sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Counts => {
                "Every write is told its own row count, as if it had been alone: updates and deletes of missing rows 0."
            }
            Self::Errors => {
                "A write that the database refuses is told its own error, and spoils no other write of its batch."
            }
            Self::Returned => {
                "What a write gives back is its own row, with the values that the database generated for it."
            }
            Self::Atomic => "A unit of several writes is written as a whole or not at all.",
            Self::Committed => {
                "A success is told after the commit: the next read sees the row, and it survives what the database survives."
            }
            Self::Unknown => {
                "Where the answer is lost, the client is told that the outcome is unknown: never a false success, and nothing is run twice."
            }
            Self::Order => {
                "Writes of one client to one row take place in the order in which it sent them."
            }
            Self::Values => {
                "Values keep every digit, but in columns of floating point, which round: what is read is what was written, or the write is refused."
            }
            Self::Unique => "Unique keys besides the primary key are kept.",
            Self::ForeignKeys => "Foreign keys are kept.",
            Self::Locks => {
                "A write that waits for somebody else's lock goes on alone and does not hold up its batch."
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
    /// Which one.
    pub promise: Promise,
    /// Why, and what happens instead: one sentence, for users.
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
