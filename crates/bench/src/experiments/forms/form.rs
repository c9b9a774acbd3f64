//! The forms, and what writes by them.

use std::time::Duration;

use anyhow::Result;

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

/// One connection.
pub(super) trait Client {
    /// The forms that the database has.
    fn forms(&self) -> &'static [Form];

    /// Prepares what batches of so many rows need. False: the form has no place for so many.
    fn ready(&mut self, form: Form, rows: u32) -> Result<bool>;

    /// Writes and commits one batch, of the readings from `first` on.
    fn write(&mut self, form: Form, first: u64, rows: u32) -> Result<()>;

    /// CPU time of the database where it is a library in this thread; that of a server is asked
    /// elsewhere.
    fn own_cpu(&self) -> Result<Option<Duration>> {
        Ok(None)
    }
}

/// `(?, ?), (?, ?)`: so many lists of values, whose placeholders are made from their numbers.
pub(super) fn lists(rows: u32, placeholder: impl Fn(u32) -> String) -> String {
    let list = |row: u32| {
        let places = (1..=COLUMNS).map(|column| placeholder(row * COLUMNS + column));
        format!("({})", places.collect::<Vec<_>>().join(", "))
    };
    (0..rows).map(list).collect::<Vec<_>>().join(", ")
}

/// Columns of a reading.
pub(super) const COLUMNS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_through() {
        let text = lists(2, |n| format!("${n}"));
        assert_eq!(text, "($1, $2, $3, $4, $5), ($6, $7, $8, $9, $10)");
    }
}
