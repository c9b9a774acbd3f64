//! Where rows are read from.

mod csv;
mod decode;
mod input;
mod names;
mod ndjson;
mod open;
#[cfg(feature = "parquet")]
mod parquet;
mod skip;
mod window;

use std::io;
use std::sync::Arc;

pub use self::input::IDENTIFYING_BYTES;
#[cfg(any(test, fuzzing))]
pub(crate) use self::open::open_reader;
pub use self::open::{Format, Options, open};
pub use self::window::MOST_RECORD_BYTES;

use windrow_core::{CsvStyle, CsvText, Holds, Means, Name, Rows};

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
    unsplit: Option<csv::Unsplit>,
    /// The memory of what was unsplit.
    text: String,
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
    /// ([`Source::read_unsplit`]).
    pub fn csv(&self) -> Option<CsvText<'_>> {
        self.unsplit.as_ref().map(csv::Unsplit::csv)
    }

    /// Splits into rows what was read without that; what was not, stays as it is.
    pub fn split(&mut self) {
        if let Some(unsplit) = self.unsplit.take() {
            unsplit.split(self);
            self.text = unsplit.into_text();
        }
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
        self.unsplit.as_ref().map(csv::Unsplit::lines).or(split)
    }

    /// A row as it was in the source, to those that are there.
    fn push_raw(&mut self, record: u64, raw: &[u8]) {
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

/// Why a source cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub enum SourceFault {
    /// It cannot be opened or read.
    #[error("{name}: {error}")]
    Io {
        /// The file, or `standard input`.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// What is in it makes no sense as a whole (no header, a cut archive, a row in the middle of
    /// which it ends).
    #[error("{name}, line {line}: {reason}")]
    Form {
        /// The file, or `standard input`.
        name: String,
        /// The line, from 1.
        line: u64,
        /// What was wrong, and what to do.
        reason: String,
    },
}

/// A file that is read from its beginning to its end. It blocks: it is read on a thread of its own.
pub trait Source: Send {
    /// What the file calls its columns; `None` if it has no names (a CSV file without a header).
    fn names(&self) -> Option<&[Name]>;

    /// The record that names the columns, as it stands in the file: what a file that is made of its
    /// other records must begin with. `None` if the format has none.
    fn header(&self) -> Option<&[u8]> {
        None
    }

    /// How many columns the file has: the names, or the fields of its first record. A table's
    /// columns can be matched to a file without names only where there are as many. `None` if
    /// it cannot be known ahead.
    fn columns(&self) -> Option<usize> {
        self.names().map(<[Name]>::len)
    }

    /// What other records at its beginning call columns that [`Source::names`] does not have, where
    /// each record names its own.
    fn others(&self) -> &[Name] {
        &[]
    }

    /// Where each record names its columns: adds these to [`Source::names`]. `only`: what else a
    /// record has is passed over; without it such a record is refused. Called at most once,
    /// before [`Source::choose`].
    fn admit(&mut self, _: &[Name], _only: bool) {}

    /// So many of [`Source::names`], the first of them, follow from the file's first record alone,
    /// whatever is added to it later.
    fn lasting(&self) -> usize {
        usize::MAX
    }

    /// Which of the file's columns (counted from 0) each row is to hold, in this order. Called
    /// once, before the first [`Source::read`]; without it all of them in the file's order.
    fn choose(&mut self, columns: &[usize]);

    /// What the columns that were chosen make of fields without a type, in the order of
    /// [`Source::choose`]. Called once behind it; without it they are taken for what they look
    /// like.
    fn means(&mut self, _: &[Means]) {}

    /// What the file says that its columns hold, in the order of [`Source::choose`], where it says
    /// so; asked behind it.
    fn declared(&self) -> Vec<Option<Holds>> {
        Vec::new()
    }

    /// Clears the portion, then fills it with the next records. False: there are none any more.
    ///
    /// # Errors
    /// [`SourceFault`]; what was read before it is in the portion.
    fn read(&mut self, portion: &mut Portion, most: Most) -> Result<bool, SourceFault>;

    /// How its records are written, where [`Source::read_unsplit`] can hand them out as they stand.
    /// Asked after [`Source::choose`].
    fn style(&self) -> Option<CsvStyle> {
        None
    }

    /// As [`Source::read`], but without splitting records into fields where they need no care: what
    /// is wrong with one of them is then told by [`Portion::split`]. `style`: that of
    /// [`Source::style`].
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_unsplit(
        &mut self,
        _style: &Arc<CsvStyle>,
        portion: &mut Portion,
        most: Most,
    ) -> Result<bool, SourceFault> {
        self.read(portion, most)
    }

    /// Its first bytes, unpacked: as many as [`Options::head`] asks for at least, if there are as
    /// many.
    fn head(&self) -> &[u8];

    /// The line of a last record that was not handed out because its end is missing, with
    /// [`Options::unfinished`].
    fn left(&self) -> Option<u64> {
        None
    }

    /// How many empty lines were passed over, and the first of them.
    fn empty_lines(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Bytes of the file that were read so far, as they lie on the disk (compressed, if it is), for
    /// the progress bar.
    fn read_bytes(&self) -> u64;

    /// Bytes of the file on the disk; `None` where that cannot be known (standard input, a pipe).
    fn all_bytes(&self) -> Option<u64>;
}
