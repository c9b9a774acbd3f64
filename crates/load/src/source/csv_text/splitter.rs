//! The form of a file's records.

use windrow_core::Means;

use super::record::Record;
use super::style::Style;

/// The form of a file's records.
#[derive(Clone, Debug)]
pub(in crate::source) struct Splitter {
    pub(in crate::source) style: Style,
    /// Fields that mean NULL.
    pub(in crate::source) nulls: Vec<Box<str>>,
    /// The number of fields of a record; `None` before the first record of a file without a header.
    pub(in crate::source) columns: Option<usize>,
    /// The number of additional fields that a record may have, which must be empty: the header has
    /// delimiters after its last name.
    pub(in crate::source) spare: usize,
    /// True if a record whose backslashes look like escapes is refused, because no option says what
    /// they are.
    pub(in crate::source) doubts: bool,
    /// The fields of which rows consist; `None` for all.
    pub(in crate::source) chosen: Option<Vec<usize>>,
    /// The meaning of each field of a row in its column. If empty, a field means what it looks
    /// like.
    pub(in crate::source) means: Vec<Means>,
}

/// The position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct Position {
    /// The record's number among all records.
    pub(in crate::source) record: u64,
    /// The record's first line.
    pub(in crate::source) line: u64,
}

impl Splitter {
    /// Returns true if rows consist of all columns in the file's order.
    pub(in crate::source) fn takes_all(&self) -> bool {
        if self.spare > 0 {
            return false;
        }
        let (Some(columns), Some(chosen)) = (self.columns, &self.chosen) else {
            return self.columns.is_some();
        };
        chosen.iter().copied().eq(0..columns)
    }

    /// Returns false for an empty line, unless records have one field.
    pub(in crate::source) fn is_record(&self, found: &Record) -> bool {
        found.end > 0 || self.columns == Some(1)
    }
}

#[cfg(test)]
impl Splitter {
    /// Returns the form of a file with commas and so many columns.
    pub(in crate::source) fn sample(columns: usize) -> Self {
        Self {
            style: Style {
                delimiter: b',',
                quote: Some(b'"'),
                line_end: b'\n',
                escapes: None,
            },
            nulls: vec!["".into()],
            columns: Some(columns),
            spare: 0,
            doubts: true,
            chosen: None,
            means: Vec::new(),
        }
    }
}
