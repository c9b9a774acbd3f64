//! CSV files.

mod record;

use windrow_core::{Field, Name};

use self::record::{Piece, Record, Scan, Style};
use super::window::Window;
use super::{Bad, Most, Options, Portion, Source, SourceFault, names, skip};

pub(super) use self::record::MOST_COLUMNS;

/// A CSV file that is read.
pub(super) struct Csv {
    window: Window,
    style: Style,
    nulls: Vec<Box<str>>,
    names: Option<Vec<Name>>,
    /// The record that the names are from.
    heading: Option<Box<[u8]>>,
    /// Fields that a record has; `None` before the first record of a file without a header.
    columns: Option<usize>,
    /// Which of them rows are made of; `None`: all.
    chosen: Option<Vec<usize>>,
    found: Record,
    /// The line that the window begins on.
    line: u64,
    /// The number of the next record.
    record: u64,
}

impl Csv {
    /// Reads the header, or counts the fields of the first record.
    ///
    /// # Errors
    /// The file is empty, its header is no list of different names, or it cannot be read.
    pub(super) fn open(
        window: Window,
        options: &Options,
        delimiter: u8,
    ) -> Result<Self, SourceFault> {
        let mut csv = Self {
            window,
            style: Style {
                delimiter,
                quote: options.quote,
                line_end: b'\n',
            },
            nulls: options
                .null
                .iter()
                .map(|null| null.as_str().into())
                .collect(),
            names: None,
            heading: None,
            columns: None,
            chosen: None,
            found: Record::default(),
            line: 1,
            record: 0,
        };
        csv.find_line_end()?;
        if !csv.find()? {
            return Err(csv.window.form(1, "the file is empty; it has no columns"));
        }
        let columns = csv.found.count;
        if columns > MOST_COLUMNS {
            return Err(csv.window.form(
                csv.line,
                format!("has {columns} columns; the limit is {MOST_COLUMNS}"),
            ));
        }
        csv.columns = Some(columns);
        if options.header {
            csv.names = Some(csv.header()?);
            csv.heading = csv.window.data().get(..csv.found.end).map(Into::into);
            csv.advance();
        }
        Ok(csv)
    }

    fn find_line_end(&mut self) -> Result<(), SourceFault> {
        loop {
            let (data, last) = (self.window.data(), self.window.is_last());
            if let Some(found) = record::line_end(data, self.style.quote, last) {
                self.style.line_end = found;
                return Ok(());
            }
            self.window.more(self.line)?;
        }
    }

    /// Finds the next record; false at the end. Empty lines are no records, unless records have one field.
    fn find(&mut self) -> Result<bool, SourceFault> {
        let most = self.columns.unwrap_or(MOST_COLUMNS);
        loop {
            let (data, last) = (self.window.data(), self.window.is_last());
            if data.is_empty() && last {
                return Ok(false);
            }
            match self.found.scan(data, self.style, most, last) {
                Scan::Whole if self.found.end == 0 && self.columns != Some(1) => self.advance(),
                Scan::Whole => return Ok(true),
                Scan::Cut => self.window.more(self.line)?,
                Scan::Open(quote) => {
                    let before = data.get(..quote).unwrap_or_default();
                    let lines = memchr::memchr_iter(self.style.line_end, before).count();
                    let line = self.line + lines as u64;
                    return Err(self.window.form(
                        self.line,
                        format!(
                            "the file ends inside of a quoted field that began on line {line}; it is cut off, or a quote \
                             is not meant as one (then say that there are no quotes)"
                        ),
                    ));
                }
            }
        }
    }

    /// Goes on behind the record that was found.
    fn advance(&mut self) {
        self.window.consume(self.found.next);
        self.line += self.found.lines;
    }

    fn header(&self) -> Result<Vec<Name>, SourceFault> {
        let fault = |reason: String| {
            let message = format!("{reason}; the first line is to name the columns");
            self.window.form(self.line, message)
        };
        let raw = self.window.data().get(..self.found.end);
        let text = utf8(raw.unwrap_or_default()).map_err(fault)?;
        let patched = std::str::from_utf8(&self.found.scratch).unwrap_or_default();
        let names: Vec<Name> = self
            .found
            .pieces
            .iter()
            .map(|piece| piece.of(text, patched).0.into())
            .collect();
        names::check(&names).map_err(fault)?;
        Ok(names)
    }

    /// Puts the record that was found into the portion. False: the portion has no room for it.
    fn take(&mut self, portion: &mut Portion) -> bool {
        let raw = self.window.data().get(..self.found.end);
        let raw = raw.unwrap_or_default();
        let expected = self.columns.unwrap_or(self.found.count);
        let text = match self.found.check(raw, expected, self.style) {
            Ok(text) => text,
            Err(reason) => {
                portion.bad.push(Bad {
                    record: self.record,
                    line: self.line,
                    raw: raw.to_vec(),
                    reason,
                });
                return true;
            }
        };
        let patched = std::str::from_utf8(&self.found.scratch).unwrap_or_default();
        let field = |piece: &Piece| field(*piece, text, patched, &self.nulls);
        let pieces = &self.found.pieces;
        let rows = &mut portion.rows;
        let added = match &self.chosen {
            None => rows.push(self.line, pieces.iter().map(field)),
            Some(chosen) => {
                let chosen = chosen.iter().map(|at| pieces.get(*at));
                rows.push(
                    self.line,
                    chosen.map(|piece| piece.map_or(Field::Null, field)),
                )
            }
        };
        if added {
            portion.records.push(self.record);
            portion.raw.extend_from_slice(raw);
            portion.raw_ends.push(portion.raw.len());
        }
        added
    }
}

impl Source for Csv {
    fn names(&self) -> Option<&[Name]> {
        self.names.as_deref()
    }

    fn header(&self) -> Option<&[u8]> {
        self.heading.as_deref()
    }

    fn columns(&self) -> Option<usize> {
        self.columns
    }

    fn choose(&mut self, columns: &[usize]) {
        self.chosen = Some(columns.to_vec());
    }

    fn read(&mut self, portion: &mut Portion, most: Most) -> Result<bool, SourceFault> {
        portion.clear();
        portion.end = self.record;
        let mut bad_bytes = 0;
        while !skip::is_full(portion, most, bad_bytes) && self.find()? {
            let bad = portion.bad.len();
            if !self.take(portion) {
                break;
            }
            if portion.bad.len() > bad {
                bad_bytes += self.found.end;
            }
            self.advance();
            self.record += 1;
            portion.end = self.record;
        }
        Ok(!portion.records.is_empty() || !portion.bad.is_empty())
    }

    fn read_bytes(&self) -> u64 {
        self.window.input().read_bytes()
    }

    fn all_bytes(&self) -> Option<u64> {
        self.window.input().all_bytes()
    }
}

impl Piece {
    /// Its text, and whether it stood in quotes.
    fn of<'a>(self, text: &'a str, patched: &'a str) -> (&'a str, bool) {
        let (text, from, to, quoted) = match self {
            Self::Bare(from, to) => (text, from, to, false),
            Self::Quoted(from, to) => (text, from, to, true),
            Self::Patched(from, to) => (patched, from, to, true),
        };
        // Delimiters and quotes are ASCII: text can be cut at each of them.
        (text.get(from..to).unwrap_or_default(), quoted)
    }
}

/// Only a field without quotes can be NULL, or a number. JSON stays JSON, so that a column of json does not get it as
/// a string.
fn field<'a>(piece: Piece, text: &'a str, patched: &'a str, nulls: &[Box<str>]) -> Field<'a> {
    let (text, quoted) = piece.of(text, patched);
    if !quoted && nulls.iter().any(|null| **null == *text) {
        Field::Null
    } else if text.starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
    {
        Field::Json(text)
    } else if quoted {
        Field::Text(text)
    } else {
        Field::Plain(text)
    }
}

impl Record {
    /// The text of a record that is right as far as that can be told without its columns' types.
    fn check<'a>(&self, raw: &'a [u8], columns: usize, style: Style) -> Result<&'a str, String> {
        if self.count != columns {
            let s = if self.count == 1 { "" } else { "s" };
            return Err(format!(
                "has {} field{s} where {columns} are expected",
                self.count
            ));
        }
        if self.stray {
            let what = if style.line_end == b'\n' {
                "a carriage return"
            } else {
                "a line feed"
            };
            return Err(format!(
                "has {what} outside of quotes, which ends no line in this file"
            ));
        }
        skip::no_nul(raw)?;
        utf8(raw)
    }
}

fn utf8(raw: &[u8]) -> Result<&str, String> {
    skip::utf8(raw)
}
