//! Records that are handed out as they stand in the file.

use std::sync::Arc;

use windrow_core::{CsvStyle, CsvText};

use super::splitter::{Position, Splitter};

/// Whole records of a file.
#[derive(Clone, Debug)]
pub(in crate::source) struct Unsplit {
    pub(in crate::source) splitter: Arc<Splitter>,
    pub(in crate::source) style: Arc<CsvStyle>,
    /// They, with their line ends.
    pub(in crate::source) text: String,
    pub(in crate::source) records: usize,
    /// Lines that they take.
    pub(in crate::source) lines: u64,
    /// Where the first of them stands.
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

    /// The first line and the last.
    pub(in crate::source) fn lines(&self) -> (u64, u64) {
        let first = self.first.line;
        (first, first + self.lines.saturating_sub(1))
    }

    /// The memory.
    pub(in crate::source) fn into_text(self) -> String {
        self.text
    }
}
