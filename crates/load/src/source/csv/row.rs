//! From a record to a row.

use windrow_core::{Field, Means};

use super::record::{Piece, Record, Scan, Style};
use super::splitter::{Position, Splitter};
use crate::source::portion::{Bad, Portion};
use crate::source::skip;

impl Splitter {
    /// Puts a record that was found into the portion. False: the portion has no room for it.
    pub(super) fn take(
        &self,
        found: &Record,
        raw: &[u8],
        at: Position,
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
    fn take_all(&self, text: &[u8], first: Position, portion: &mut Portion) {
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

impl Portion {
    /// Splits into rows what was read without that; what was not, stays as it is.
    pub fn split(&mut self) {
        if let Some(unsplit) = self.unsplit.take() {
            let text = unsplit.text.as_bytes();
            unsplit.splitter.take_all(text, unsplit.first, self);
            self.text = unsplit.into_text();
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
