//! From a record to a row.

use windrow_core::{Field, Means};

use super::record::{Piece, Record, Scan, Style};
use crate::source::{Bad, Portion, skip};

/// What is known of a file's records.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    pub(super) style: Style,
    /// What stands for no value.
    pub(super) nulls: Vec<Box<str>>,
    /// Fields that a record has; `None` before the first record of a file without a header.
    pub(super) columns: Option<usize>,
    /// Which of them rows are made of; `None`: all.
    pub(super) chosen: Option<Vec<usize>>,
    /// Of each field of a row what its column makes of it; none: what it looks like.
    pub(super) means: Vec<Means>,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its number among all records.
    pub(super) record: u64,
    /// The line that it begins on.
    pub(super) line: u64,
}

impl Splitter {
    /// Rows are made of all columns, in the file's order.
    pub(super) fn takes_all(&self) -> bool {
        let (Some(columns), Some(chosen)) = (self.columns, &self.chosen) else {
            return self.columns.is_some();
        };
        chosen.iter().copied().eq(0..columns)
    }

    /// An empty line is no record, unless records have one field.
    pub(super) fn is_record(&self, found: &Record) -> bool {
        found.end > 0 || self.columns == Some(1)
    }

    /// Puts a record that was found into the portion. False: the portion has no room for it.
    pub(super) fn take(
        &self,
        found: &Record,
        raw: &[u8],
        at: Place,
        portion: &mut Portion,
    ) -> bool {
        let expected = self.columns.unwrap_or(found.count);
        let text = match check(found, raw, expected, self.style) {
            Ok(text) => text,
            Err(reason) => {
                portion.bad.push(Bad {
                    record: at.record,
                    line: at.line,
                    raw: raw.to_vec(),
                    reason,
                });
                return true;
            }
        };
        let patched = std::str::from_utf8(&found.scratch).unwrap_or_default();
        let mut means = self.means.iter().copied();
        let mut field = |piece: &Piece| {
            let means = means.next().unwrap_or_default();
            field(*piece, text, patched, &self.nulls, means)
        };
        let pieces = &found.pieces;
        let rows = &mut portion.rows;
        let added = match &self.chosen {
            None => rows.push(at.line, pieces.iter().map(&mut field)),
            Some(chosen) => {
                let chosen = chosen.iter().map(|at| pieces.get(*at));
                rows.push(
                    at.line,
                    chosen.map(|piece| piece.map_or(Field::Null, &mut field)),
                )
            }
        };
        if added {
            portion.push_raw(at.record, raw);
        }
        added
    }

    /// Puts whole records into the portion. `first`: where the first of them stands.
    pub(super) fn take_all(&self, text: &[u8], first: Place, portion: &mut Portion) {
        let mut found = Record::default();
        let most = self.columns.unwrap_or_default();
        let (mut rest, mut at) = (text, first);
        while !rest.is_empty() && found.scan(rest, self.style, most, true) == Scan::Whole {
            let (record, behind) = rest.split_at(found.next.min(rest.len()));
            if self.is_record(&found) {
                let raw = record.get(..found.end).unwrap_or_default();
                self.take(&found, raw, at, portion);
                at.record += 1;
            }
            at.line += found.lines;
            rest = behind;
        }
    }
}

impl Piece {
    /// Its text, and whether it stood in quotes.
    pub(super) fn of<'a>(self, text: &'a str, patched: &'a str) -> (&'a str, bool) {
        let (text, from, to, quoted) = match self {
            Self::Bare(from, to) => (text, from, to, false),
            Self::Quoted(from, to) => (text, from, to, true),
            Self::Patched(from, to) => (patched, from, to, true),
        };
        // Delimiters and quotes are ASCII: text can be cut at each of them.
        (text.get(from..to).unwrap_or_default(), quoted)
    }
}

/// Only a field without quotes can be NULL, or a number. In a column of JSON it is the JSON text,
/// as it is to COPY. Elsewhere an array of JSON stays one, for columns of arrays, and an object
/// where the column is still to get its type.
fn field<'a>(
    piece: Piece,
    text: &'a str,
    patched: &'a str,
    nulls: &[Box<str>],
    means: Means,
) -> Field<'a> {
    let (text, quoted) = piece.of(text, patched);
    let begins = match means {
        Means::Looks => text.starts_with(['{', '[']),
        Means::Itself => text.starts_with('['),
        Means::Json => false,
    };
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if !quoted && nulls.iter().any(|null| **null == *text) {
        Field::Null
    } else if means == Means::Json || begins && is_json() {
        Field::Json(text)
    } else if quoted {
        Field::Text(text)
    } else {
        Field::Plain(text)
    }
}

/// The text of a record that is right as far as that can be told without its columns' types.
fn check<'a>(
    found: &Record,
    raw: &'a [u8],
    columns: usize,
    style: Style,
) -> Result<&'a str, String> {
    if found.count != columns {
        let s = if found.count == 1 { "" } else { "s" };
        return Err(format!(
            "has {} field{s} where {columns} are expected",
            found.count
        ));
    }
    if found.stray {
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
    skip::utf8(raw)
}
