//! `load`: files into a table, at the database's bulk speed, with an outcome for every row. A
//! [`source`] reads a file. No code here knows a database.
//!
//! ```text
//!  file --> reader (a thread) --> portions, a bounded channel --> workers --> bulk form: a portion is one transaction
//!             ^                                                     |  bad rows: row by row through a lane
//!             +------------- memory that is filled again -----------+  refused there: rejects
//! ```
//!
//! - A portion is written in one transaction by the database's bulk form ([`windrow_core::Bulk`]).
//!   If the database refuses it, the rows that look bad are left out. They go row by row through a
//!   lane, where every row gets its own outcome. The form of the next portion follows from the
//!   portion before it (`way`).
//! - A load that can be continued writes a mark with every portion, in the same transaction, and
//!   one with every row that goes through the lane. A row with a mark is done, so no row is lost or
//!   written twice, wherever a run ends.
//! - Memory is bounded by the number of portions and their size, whatever the file's.

mod blame;
mod bulk;
mod columns;
mod error;
mod file;
mod lane;
mod marking;
mod meter;
mod parcel;
mod reader;
mod rejects;
mod resume;
mod retries;
mod shared;
pub mod source;
mod spans;
mod team;
#[cfg(any(test, fuzzing))]
pub mod trial;
mod way;
mod witness;
mod worker;

#[cfg(test)]
mod tests;

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windrow_core::{Bulk, Database, Intake, Key, Name, OnConflict, TableName};

use crate::source::{Source, SourceFault};

pub use self::columns::Pick;
pub use self::error::LoadError;
pub use self::meter::{Meter, Reading};
pub use self::rejects::{Listener, Reason, Reject, Rejects};
pub use self::resume::Identity;
pub use self::witness::OddText;

/// The settings of a load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The table.
    pub table: TableName,
    /// The columns to load, and their names in the table; `None`: all, by name.
    pub columns: Option<Vec<Pick>>,
    /// The action on a row whose key exists already.
    pub on_conflict: OnConflict,
    /// The key that counts as a conflict.
    pub key: Key,
    /// True if the table and columns that it lacks are created. The sink must have been opened
    /// with `create_tables`.
    pub create: bool,
    /// The number of workers; `None`: as many as suit the database.
    pub jobs: Option<NonZero<usize>>,
    /// The most rows of a portion; `None`: as many as suit the database.
    pub portion_rows: Option<NonZero<usize>>,
    /// The most records of each file that are read; `None` for all.
    pub limit: Option<u64>,
    /// The longest wait for an unreachable database.
    pub away_wait: Duration,
}

/// The destination of the rows.
#[derive(Clone)]
pub struct Target {
    /// The database.
    pub sink: Arc<dyn Database>,
    /// A lane of the database, for rows that are written one by one.
    pub intake: Intake,
}

/// Opens a file, on a thread where it may block.
pub type Opener = Arc<dyn Fn() -> Result<Box<dyn Source>, SourceFault> + Send + Sync>;

/// A file.
pub struct Input {
    /// The file's name in messages.
    pub name: String,
    /// Opens the file.
    pub open: Opener,
    /// True if it can be opened only once, such as standard input.
    pub once: bool,
    /// The identity of the file from one run to the next, if a later run may continue the load. Its
    /// source must then keep [`crate::source::IDENTIFYING_BYTES`], which show that the file is
    /// still the same.
    pub identity: Option<Identity>,
}

/// The outcome of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were read to their end.
    pub files: usize,
    /// Counts over all files.
    pub counts: Reading,
    /// The form by which rows were written: the bulk form's name, or that of the lane.
    pub form: String,
    /// The number of files that an earlier run had loaded completely.
    pub done_before: usize,
    /// Files whose last line has no end and was not loaded
    /// ([`crate::source::Options::unfinished`]), with the number of the line.
    pub left: Vec<(String, u64)>,
    /// CSV files with empty lines, which were skipped: the number of those lines, and the first.
    pub empty_lines: Vec<(String, u64, u64)>,
    /// Tab-separated files whose backslashes were loaded unchanged although they may be escapes of
    /// COPY's text format: the line of the first.
    pub backslashes: Vec<(String, u64)>,
    /// Columns that were created or given another type.
    pub made: Vec<MadeColumn>,
}

/// A column that was created, or given another type, from the values of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeColumn {
    /// The column's name.
    pub column: Name,
    /// The database's name of the column's type.
    pub type_name: Box<str>,
    /// The file.
    pub file: String,
    /// True if the file declares the column's type.
    pub declared: bool,
    /// The text that keeps the column from holding numbers or times.
    pub odd: Option<OddText>,
}

/// The state shared by all files of a load.
pub struct Run {
    /// The settings.
    pub load: Load,
    /// The destination of rows.
    pub target: Target,
    /// The destination of refused rows.
    pub rejects: Arc<Rejects>,
    /// The counters.
    pub meter: Arc<Meter>,
    /// Cancelled to end the load early: portions under way are finished.
    pub stop: CancellationToken,
}

impl Run {
    /// Loads files one after another. Needs a current tokio runtime with timers.
    ///
    /// Cancelling [`Run::stop`] ends the load with [`LoadError::Interrupted`] once the portions
    /// under way are finished. If the future is dropped instead, the portions under way may or may
    /// not be written; with marks, the next run knows which of them were.
    ///
    /// # Errors
    /// The reason why the load ended early. Portions that were committed before stay.
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

    /// Returns the name of the form by which rows are written. Some databases know it only after
    /// they have loaded rows.
    pub fn form(&self) -> String {
        Self::form_of(self.target.sink.bulk().as_deref())
    }

    fn form_of(bulk: Option<&dyn Bulk>) -> String {
        match bulk {
            Some(bulk) => bulk.form().to_owned(),
            None => "batches".to_owned(),
        }
    }
}
