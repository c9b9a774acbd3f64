//! Records that were read together, as rows or as in the file.

use windrow_core::{CsvText, Field, Rows};

use super::csv_text::unsplit::Unsplit;

/// A record that could not be read as a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// The record's number among all of the source, good and bad, from 0.
    pub record: u64,
    /// The record's first line (or its number, for formats without lines), from 1.
    pub line: u64,
    /// The record's bytes, exactly as in the file.
    pub raw: Vec<u8>,
    /// The reason why the record is not a row.
    pub reason: String,
}

/// Records that were read together.
#[derive(Clone, Debug, Default)]
pub struct Portion {
    /// The rows, with their line numbers.
    pub rows: Rows,
    /// The number of each row among all records of the source, good and bad, from 0.
    pub records: Vec<u64>,
    /// The bytes of the rows as in the source, without line ends.
    pub raw: Vec<u8>,
    /// The end of each row in `raw`.
    pub raw_ends: Vec<usize>,
    /// Records that are not rows.
    pub bad: Vec<BadRecord>,
    /// The number of the record after the last one of this portion.
    pub end: u64,
    /// Records that are not split yet. Then the portion holds nothing else.
    pub(super) unsplit: Option<Unsplit>,
    /// Memory for unsplit records.
    pub(super) text: String,
}

impl Portion {
    /// Returns an empty portion of rows with so many columns.
    pub fn new(columns: usize) -> Self {
        Self {
            rows: Rows::new(columns),
            ..Self::default()
        }
    }

    /// Returns the bytes of a row as in the source.
    pub fn raw(&self, row: usize) -> &[u8] {
        let from = match row.checked_sub(1) {
            Some(before) => self.raw_ends.get(before).copied().unwrap_or_default(),
            None => 0,
        };
        let to = self.raw_ends.get(row).copied().unwrap_or(from);
        self.raw.get(from..to).unwrap_or_default()
    }

    /// Returns the records as in the source, if they are not split yet
    /// ([`super::Source::read_unsplit`]).
    pub fn csv(&self) -> Option<CsvText<'_>> {
        self.unsplit.as_ref().map(Unsplit::csv)
    }

    /// Returns true if the portion holds no record.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.bad.is_empty() && self.unsplit.is_none()
    }

    /// Returns the first lines of the first record and of the last one; for records that are not
    /// split yet, their first and last line. `None` if there are no rows.
    pub fn lines(&self) -> Option<(u64, u64)> {
        let lines = self.rows.lines();
        let split = lines.first().copied().zip(lines.last().copied());
        self.unsplit.as_ref().map(Unsplit::lines).or(split)
    }

    /// Adds a row, and its bytes as in the source. Returns false if the portion has no room for it.
    pub(super) fn push_row<'f>(
        &mut self,
        (record, line): (u64, u64),
        raw: &[u8],
        fields: impl Iterator<Item = Field<'f>>,
    ) -> bool {
        if !self.rows.push(line, fields) {
            return false;
        }
        self.records.push(record);
        if raw.len() > Rows::KEPT_BYTES {
            self.raw.reserve_exact(raw.len());
        }
        self.raw.extend_from_slice(raw);
        self.raw_ends.push(self.raw.len());
        true
    }

    /// Adds a record that is not a row.
    pub(super) fn push_bad(&mut self, (record, line): (u64, u64), raw: &[u8], reason: String) {
        self.bad.push(BadRecord {
            record,
            line,
            raw: raw.to_vec(),
            reason,
        });
    }

    /// Empties the portion. Keeps its memory, except for that of long records
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

/// The limits of a portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortionLimits {
    /// The most records, good and bad.
    pub records: usize,
    /// The most bytes of values. A single row may have more.
    pub bytes: usize,
}
