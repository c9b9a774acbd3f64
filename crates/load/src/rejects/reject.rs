//! One refused row: its place, the reason, and the message.

use windrow_core::Fault;

use crate::source::BadRecord;

/// A refused row, or a record that is not a row.
#[derive(Clone, Copy, Debug)]
pub struct Reject<'a> {
    /// The file of the row.
    pub file: &'a str,
    /// The row's first line (or its record), from 1.
    pub line: u64,
    /// The row's number among all records of the file, from 0.
    pub record: u64,
    /// The row's bytes, exactly as in the file.
    pub raw: &'a [u8],
    /// The reason.
    pub reason: Reason<'a>,
    /// The column whose value was refused, if it is known.
    pub column: Option<&'a str>,
    /// The beginning of that value.
    pub value: Option<&'a str>,
}

/// The reason why a row was refused.
#[derive(Clone, Copy, Debug)]
pub enum Reason<'a> {
    /// The record is not a row.
    Form(&'a str),
    /// The database refused it.
    Database(&'a Fault),
}

/// Characters of a message that are shown.
const MESSAGE: usize = 1000;

/// The code of records that cannot be read: PostgreSQL's `bad_copy_file_format`.
const FORM: &str = "22P04";

impl<'a> Reason<'a> {
    /// Returns an SQLSTATE; 22P04 for records that could not be read.
    pub fn code(&self) -> &'a str {
        match self {
            Self::Form(_) => FORM,
            Self::Database(fault) => &fault.code,
        }
    }

    /// Returns the message, shortened if it repeats a long value.
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
    pub(crate) fn bad(file: &'a str, bad: &'a BadRecord) -> Self {
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

    /// Returns `file, line 7: message (code); column a has "x"`. Control characters are escaped for
    /// terminals.
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

/// The origin of rows, as in their rejects.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) file: String,
    /// The load's name, if it can be continued.
    pub(crate) load: Option<Box<str>>,
}
