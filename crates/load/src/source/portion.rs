//! Records that were read together, as rows or as they stand in the file.

use windrow_core::{CsvText, Rows};

use super::csv_text::unsplit::Unsplit;

/// A record that could not be read as a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Its number among all records of the source, good and bad, from 0.
    pub record: u64,
    /// The line (or record, for formats without lines) that it began on, from 1.
    pub line: u64,
    /// It, as it was.
    pub raw: Vec<u8>,
    /// What was wrong with it.
    pub reason: String,
}

/// Records that were read together.
#[derive(Clone, Debug, Default)]
pub struct Portion {
    /// The rows. Their line numbers are in them.
    pub rows: Rows,
    /// Of each row its number among all records of the source, good and bad, from 0.
    pub records: Vec<u64>,
    /// The rows as they were in the source, one behind the other, without line ends.
    pub raw: Vec<u8>,
    /// Of each row where it ends in `raw`.
    pub raw_ends: Vec<usize>,
    /// What could not be read.
    pub bad: Vec<Bad>,
    /// The number of the record behind the last one of this portion.
    pub end: u64,
    /// Records that are still to be split; then the portion has nothing else in it.
    pub(super) unsplit: Option<Unsplit>,
    /// The memory of what was unsplit.
    pub(super) text: String,
}

impl Portion {
    /// None, of so many columns.
    pub fn new(columns: usize) -> Self {
        Self {
            rows: Rows::new(columns),
            ..Self::default()
        }
    }

    /// A row as it was in the source.
    pub fn raw(&self, row: usize) -> &[u8] {
        let from = match row.checked_sub(1) {
            Some(before) => self.raw_ends.get(before).copied().unwrap_or_default(),
            None => 0,
        };
        let to = self.raw_ends.get(row).copied().unwrap_or(from);
        self.raw.get(from..to).unwrap_or_default()
    }

    /// The records as they stand in the source, if they are still to be split
    /// ([`super::Source::read_unsplit`]).
    pub fn csv(&self) -> Option<CsvText<'_>> {
        self.unsplit.as_ref().map(Unsplit::csv)
    }

    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.bad.is_empty() && self.unsplit.is_none()
    }

    /// The lines that its first record and its last one begin on; of records that are still to be
    /// split, the lines that they take. `None`: there are no rows.
    pub fn lines(&self) -> Option<(u64, u64)> {
        let lines = self.rows.lines();
        let split = lines.first().copied().zip(lines.last().copied());
        self.unsplit.as_ref().map(Unsplit::lines).or(split)
    }

    /// A row as it was in the source, to those that are there.
    pub(super) fn push_raw(&mut self, record: u64, raw: &[u8]) {
        self.records.push(record);
        if raw.len() > Rows::KEPT_BYTES {
            self.raw.reserve_exact(raw.len());
        }
        self.raw.extend_from_slice(raw);
        self.raw_ends.push(self.raw.len());
    }

    /// Takes everything out, and keeps the memory, but for that of records of great length
    /// ([`Rows::KEPT_BYTES`]).
    pub fn clear(&mut self) {
        if let Some(unsplit) = self.unsplit.take() {
            self.text = unsplit.into_text();
        }
        self.text.clear();
        self.text.shrink_to(Rows::KEPT_BYTES);
        self.rows.clear();
        self.records.clear();
        self.raw.clear();
        self.raw.shrink_to(Rows::KEPT_BYTES);
        self.raw_ends.clear();
        self.bad.clear();
    }
}

/// How much a portion may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Records, good and bad.
    pub records: usize,
    /// Bytes of values. A single row may pass it.
    pub bytes: usize,
}
