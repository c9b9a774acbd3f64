//! Records that are passed on as in the file.

use std::sync::Arc;

use windrow_core::{CsvStyle, CsvText};

use super::splitter::{Position, Splitter};

/// Whole records of a file.
#[derive(Clone, Debug)]
pub(in crate::source) struct Unsplit {
    pub(in crate::source) splitter: Arc<Splitter>,
    pub(in crate::source) style: Arc<CsvStyle>,
    /// The records, with their line ends.
    pub(in crate::source) text: String,
    pub(in crate::source) records: usize,
    /// The number of lines.
    pub(in crate::source) lines: u64,
    /// The position of the first record.
    pub(in crate::source) first: Position,
}

impl Unsplit {
    pub(in crate::source) fn csv(&self) -> CsvText<'_> {
        CsvText {
            style: &self.style,
            text: &self.text,
            records: self.records,
        }
    }

    /// Returns the first line and the last.
    pub(in crate::source) fn lines(&self) -> (u64, u64) {
        let first = self.first.line;
        (first, first + self.lines.saturating_sub(1))
    }

    /// Returns the memory.
    pub(in crate::source) fn into_text(self) -> String {
        self.text
    }
}
