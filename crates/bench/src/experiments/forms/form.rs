//! The forms in which rows can be written.

use crate::servers::Kind;

/// The form in which a batch of rows is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One prepared statement and a commit for each row.
    Single,
    /// The same statements between BEGIN and COMMIT; each waits for its answer.
    Transaction,
    /// The same statements, none of which waits; one Sync, and so one transaction.
    Pipelined,
    /// One prepared statement with a list of values for each row.
    Values,
    /// One prepared statement with an array for each column.
    Unnest,
    /// One COPY in its binary format.
    Copy,
    /// One LOAD DATA LOCAL.
    LoadData,
}

impl Form {
    /// All forms.
    pub(super) const ALL: [Self; 7] = [
        Self::Single,
        Self::Transaction,
        Self::Pipelined,
        Self::Values,
        Self::Unnest,
        Self::Copy,
        Self::LoadData,
    ];

    /// Returns true if the database has the form.
    pub(super) fn is_of(self, kind: Kind) -> bool {
        match self {
            Self::Single | Self::Transaction | Self::Values => true,
            Self::Pipelined | Self::Unnest | Self::Copy => kind == Kind::Postgres,
            Self::LoadData => kind == Kind::MariaDb,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Transaction => "prepared in a transaction",
            Self::Pipelined => "pipelined, one Sync",
            Self::Values => "multi-row VALUES",
            Self::Unnest => "unnest",
            Self::Copy => "COPY BINARY",
            Self::LoadData => "LOAD DATA LOCAL",
        }
    }

    /// The arm of batches of so many rows.
    pub(super) fn arm(self, rows: u32) -> String {
        format!("{}, {rows}", self.name())
    }
}
