//! What is known of the records of a file.

use windrow_core::Means;

use super::record::{Record, Style};

/// What is known of a file's records.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    pub(super) style: Style,
    /// What stands for no value.
    pub(super) nulls: Vec<Box<str>>,
    /// Fields that a record has; `None` before the first record of a file without a header.
    pub(super) columns: Option<usize>,
    /// Which of them rows are made of; `None`: all.
    pub(super) chosen: Option<Vec<usize>>,
    /// Of each field of a row what its column makes of it; none: what it looks like.
    pub(super) means: Vec<Means>,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Its number among all records.
    pub(super) record: u64,
    /// The line that it begins on.
    pub(super) line: u64,
}

impl Splitter {
    /// Rows are made of all columns, in the file's order.
    pub(super) fn takes_all(&self) -> bool {
        let (Some(columns), Some(chosen)) = (self.columns, &self.chosen) else {
            return self.columns.is_some();
        };
        chosen.iter().copied().eq(0..columns)
    }

    /// An empty line is no record, unless records have one field.
    pub(super) fn is_record(&self, found: &Record) -> bool {
        found.end > 0 || self.columns == Some(1)
    }
}
