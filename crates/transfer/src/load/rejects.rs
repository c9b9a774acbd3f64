//! Rows that were refused: counted, shown, and kept in a file that can be corrected and loaded
//! again.
//!
//! `FILE` holds the rows as they were in the source, behind the header that the source has.
//! `FILE.reasons` holds one JSON object a line for each of them, in the same order. Rows are
//! written before their reasons and both before the mark that says that they are done with; a
//! reason tells where its row ends in `FILE`, so half of a row, left by a crash, is cut off.

mod file;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use windrow_core::{Fault, Span};

use self::file::Pair;
use super::LoadError;
use crate::source::Bad;

/// A row that was refused, or a record that is no row.
#[derive(Clone, Copy, Debug)]
pub struct Reject<'a> {
    /// The file that it is from.
    pub file: &'a str,
    /// The line (or record) that it begins on, from 1.
    pub line: u64,
    /// Its number among all records of the file, from 0.
    pub record: u64,
    /// It, as it was in the file.
    pub raw: &'a [u8],
    /// Why.
    pub reason: Reason<'a>,
    /// The column whose value was refused, where that is known.
    pub column: Option<&'a str>,
    /// The beginning of that value, as it is.
    pub value: Option<&'a str>,
}

/// Why a row was refused.
#[derive(Clone, Copy, Debug)]
pub enum Reason<'a> {
    /// It could not be read as a row.
    Form(&'a str),
    /// The database refused it.
    Database(&'a Fault),
}

/// Characters of a message that are told.
const MESSAGE: usize = 1000;

/// The code of records that cannot be read: PostgreSQL's `bad_copy_file_format`.
const FORM: &str = "22P04";

impl<'a> Reason<'a> {
    /// An SQLSTATE; 22P04 for records that could not be read.
    pub fn code(&self) -> &'a str {
        match self {
            Self::Form(_) => FORM,
            Self::Database(fault) => &fault.code,
        }
    }

    /// What was wrong; of a message that repeats a value of great length, its beginning.
    pub fn message(&self) -> &'a str {
        let message: &str = match self {
            Self::Form(reason) => reason,
            Self::Database(fault) => &fault.message,
        };
        let end = message.char_indices().nth(MESSAGE);
        end.map_or(message, |(end, _)| message.get(..end).unwrap_or(message))
    }
}

impl<'a> Reject<'a> {
    pub(super) fn bad(file: &'a str, bad: &'a Bad) -> Self {
        Self {
            file,
            line: bad.line,
            record: bad.record,
            raw: &bad.raw,
            reason: Reason::Form(&bad.reason),
            column: None,
            value: None,
        }
    }

    /// `file, line 7: what was wrong (code); column a has "x"`. Control characters are escaped: it
    /// may be shown on a terminal.
    pub fn sentence(&self) -> String {
        let (code, message) = (self.reason.code(), self.reason.message());
        let mut text = format!("{}, line {}: ", self.file, self.line);
        for c in message.chars() {
            match c.is_control() {
                true => text.extend(c.escape_debug()),
                false => text.push(c),
            }
        }
        text.push_str(&format!(" ({code})"));
        match (self.column, self.value) {
            (Some(column), Some(value)) => {
                text.push_str(&format!("; column {column} has {value:?}"));
            }
            (Some(column), None) => text.push_str(&format!("; column {column} has no value")),
            (None, _) => {}
        }
        text
    }
}

/// Hears of every row that is refused, from any thread. It must not block for long.
pub type Listener = Box<dyn Fn(&Reject<'_>) + Send + Sync>;

/// Where refused rows go. Shared by all that load.
pub struct Rejects {
    most: Option<u64>,
    listener: Listener,
    desk: Mutex<Desk>,
}

#[derive(Default)]
struct Desk {
    count: u64,
    last: String,
    pair: Option<Pair>,
}

/// Where rows of one file come from, as its rejects tell it.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) file: String,
    /// The load's name, if it can be continued.
    pub(super) load: Option<Box<str>>,
}

impl Rejects {
    /// Refused rows are counted and told to `listener`. More than `most` of them end the load.
    pub fn new(most: Option<u64>, listener: Listener) -> Self {
        Self {
            most,
            listener,
            desk: Mutex::default(),
        }
    }

    /// Keeps them in a file too. `go_on`: a file that an earlier run has written is continued; else
    /// one that is there and is not empty is an error, because it may hold rows that somebody
    /// still needs.
    ///
    /// # Errors
    /// [`LoadError::Rejects`].
    pub fn keep(&self, path: &Path, go_on: bool) -> Result<(), LoadError> {
        self.desk().pair = Some(Pair::open(path, go_on)?);
        Ok(())
    }

    /// True if refused rows are kept.
    pub(super) fn keeps(&self) -> bool {
        self.desk().pair.is_some()
    }

    /// The files that hold refused rows and their reasons; `None` if there are none.
    pub fn kept(&self) -> Option<(PathBuf, PathBuf)> {
        let desk = self.desk();
        let pair = desk.pair.as_ref().filter(|pair| !pair.is_empty())?;
        Some(pair.paths())
    }

    /// Takes files away that hold nothing.
    pub fn close(&self) {
        if let Some(pair) = self.desk().pair.take() {
            pair.close();
        }
    }

    /// The records of a load that the files hold from an earlier run.
    pub(super) fn before(&self, load: &str) -> Vec<Span> {
        let desk = self.desk();
        let pair = desk.pair.as_ref();
        pair.map(|pair| pair.before(load)).unwrap_or_default()
    }

    /// Says what stands in the first line of the file of rows.
    pub(super) fn header(&self, header: Option<&[u8]>) -> Result<(), LoadError> {
        match &mut self.desk().pair {
            Some(pair) => pair.header(header),
            None => Ok(()),
        }
    }

    /// Notes a row. It is in the files after [`Rejects::settle`].
    pub(super) fn note(&self, origin: &Origin, reject: &Reject<'_>) -> Result<(), LoadError> {
        (self.listener)(reject);
        let mut desk = self.desk();
        desk.count += 1;
        if self.most.is_some_and(|most| desk.count > most) {
            desk.last = reject.sentence();
        }
        match &mut desk.pair {
            Some(pair) => pair.write(origin, reject),
            None => Ok(()),
        }
    }

    /// Puts what was noted into the files; on the disk where the load can be continued.
    pub(super) fn settle(&self, origin: &Origin) -> Result<(), LoadError> {
        let mut desk = self.desk();
        if let Some(pair) = &mut desk.pair {
            pair.settle(origin.load.is_some())?;
        }
        match self.most {
            Some(most) if desk.count > most => Err(LoadError::TooManyRejects {
                rejects: desk.count,
                most,
                last: desk.last.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Rejects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rejects")
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}
