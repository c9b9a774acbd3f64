//! `load`: files into a table, at the database's bulk speed, with an outcome for every row. A
//! [`source`] reads a file; nothing here knows a database.
//!
//! ```text
//!  file --> reader (a thread) --> portions, a bounded channel --> workers --> bulk form: a portion is one transaction
//!             ^                                                     |  refused: row by row through a lane
//!             +------------- memory that is filled again -----------+  bad rows: rejects
//! ```
//!
//! - A portion is written whole or not at all by the database's bulk form ([`windrow_core::Bulk`]).
//!   One that is refused goes row by row through a lane, where every row is told its own reason.
//!   How large pieces are, and when rows go to the lane at once, follows from what has been seen
//!   (`way`).
//! - A load that can be continued writes a mark with every portion, in the same transaction, and
//!   one with every row that goes through the lane. What has a mark is done; nothing is lost and
//!   nothing is doubled, wherever a run ends.
//! - Memory is bounded by the number of portions and their size, whatever the file's.

mod blame;
mod bulk;
mod columns;
mod cut;
mod error;
mod file;
mod form;
mod lane;
mod lock;
mod marking;
mod meter;
mod parcel;
mod patience;
mod reader;
mod rejects;
mod resume;
mod shared;
pub mod source;
mod spans;
mod team;
#[cfg(any(test, fuzzing))]
pub mod trial;
mod verbatim;
mod way;
mod witness;
mod worker;

#[cfg(test)]
mod tests;

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windrow_core::{Database, Intake, Key, Name, OnConflict, RowWrite, TableName};

use crate::source::{Source, SourceFault};

pub use self::columns::Pick;
pub use self::error::LoadError;
pub use self::meter::{Meter, Reading};
pub use self::rejects::{Listener, Reason, Reject, Rejects};
pub use self::resume::Identity;
pub use self::witness::Odd;

/// What is to be loaded, and how.
#[derive(Clone, Debug)]
pub struct Load {
    /// The table.
    pub table: TableName,
    /// The columns that are wanted, and what the table calls them; `None`: all, by name.
    pub columns: Option<Vec<Pick>>,
    /// What happens where a key is there already.
    pub on_conflict: OnConflict,
    /// What counts as a conflict.
    pub key: Key,
    /// True if the table and columns that it lacks are created. The sink must have been opened
    /// with `create_tables`.
    pub create: bool,
    /// How many write at once; `None`: what suits the database.
    pub jobs: Option<NonZero<usize>>,
    /// The most rows of a portion; `None`: what suits the database.
    pub portion_rows: Option<NonZero<usize>>,
    /// The most records of each file that are read; `None`: all.
    pub limit: Option<u64>,
    /// How long a database that is away is waited for.
    pub away_wait: Duration,
}

/// Where rows go.
#[derive(Clone)]
pub struct Target {
    /// The database.
    pub sink: Arc<dyn Database>,
    /// A lane of it, for rows that go one by one.
    pub intake: Intake<RowWrite>,
}

/// Opens a file. It is called on a thread where it may block.
pub type Opener = Arc<dyn Fn() -> Result<Box<dyn Source>, SourceFault> + Send + Sync>;

/// A file.
pub struct Input {
    /// How messages call it.
    pub name: String,
    /// What opens it.
    pub open: Opener,
    /// It can be opened once only: standard input.
    pub once: bool,
    /// What it is known by from one run to the next, if it is to be continued where an earlier run
    /// has ended. Its source must then keep [`crate::source::IDENTIFYING_BYTES`]: they tell
    /// whether it is still the same.
    pub identity: Option<Identity>,
}

/// How a load went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were read to their end.
    pub files: usize,
    /// Counts over all files.
    pub counts: Reading,
    /// The form by which rows were written: the bulk form's name, or that of the lane.
    pub form: String,
    /// Files of which an earlier run had loaded all.
    pub done_before: usize,
    /// Files whose last line has no end and was not loaded
    /// ([`crate::source::Options::unfinished`]), and the number of the line.
    pub left: Vec<(String, u64)>,
    /// Files of CSV with empty lines, which were passed over: how many, and the first of them.
    pub empty_lines: Vec<(String, u64, u64)>,
    /// Files between tabs whose backslashes were loaded as they stand and may be escapes of COPY's
    /// text format: the line of the first.
    pub backslashes: Vec<(String, u64)>,
    /// Columns that were made or given another type.
    pub made: Vec<Made>,
}

/// A column that was made, or given another type, from the values of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its name.
    pub column: Name,
    /// Its type, as the database calls it.
    pub type_name: Box<str>,
    /// The file.
    pub file: String,
    /// Its file says itself what it holds.
    pub declared: bool,
    /// The text because of which it holds no numbers or times.
    pub odd: Option<Odd>,
}

/// What all files of a load share.
pub struct Run {
    /// What is to be done.
    pub load: Load,
    /// Where rows go.
    pub target: Target,
    /// Where refused rows go.
    pub rejects: Arc<Rejects>,
    /// What is counted.
    pub meter: Arc<Meter>,
    /// Cancelled by whoever asks for the end: portions under way are finished.
    pub stop: CancellationToken,
}

impl Run {
    /// Loads files one after the other. On a current tokio runtime with timers.
    ///
    /// Cancelling [`Run::stop`] ends it in an orderly way with [`LoadError::Interrupted`]. A future
    /// that is dropped instead leaves portions under way to themselves; with marks the next run
    /// finds out.
    ///
    /// # Errors
    /// Why it ended early. What was committed before stays.
    pub async fn files(&self, inputs: Vec<Input>) -> Result<Summary, LoadError> {
        let mut summary = Summary {
            form: self.form(),
            ..Summary::default()
        };
        if inputs.len() > 1 {
            self.look(&inputs).await?;
        }
        let mut bytes = 0;
        for input in inputs {
            let name = input.name.clone();
            let loaded = self.file(input, bytes).await?;
            bytes += loaded.bytes;
            let (lines, first) = loaded.empty;
            if lines > 0 {
                summary.empty_lines.push((name.clone(), lines, first));
            }
            let backslash = loaded.backslashes.map(|line| (name.clone(), line));
            summary.backslashes.extend(backslash);
            summary.left.extend(loaded.left.map(|line| (name, line)));
            summary.files += 1;
            summary.done_before += usize::from(loaded.done_before);
            summary.made.extend(loaded.made);
            summary.form = loaded.form;
        }
        summary.counts = self.meter.read();
        Ok(summary)
    }

    /// The form by which rows are written, as far as it is known before.
    pub fn form(&self) -> String {
        form::name(self.target.sink.bulk().as_deref())
    }
}
