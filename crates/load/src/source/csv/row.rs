//! Converts records to rows.

use windrow_core::{Field, Means};

use super::doubt;
use crate::source::csv_text::record::{FieldPlace, Record, ScanEnd};
use crate::source::csv_text::splitter::{Position, Splitter};
use crate::source::portion::Portion;
use crate::source::skip;

impl Splitter {
    /// Puts a record that was found into the portion. Returns false if the portion has no room for
    /// it.
    pub(super) fn take(
        &self,
        found: &Record,
        raw: &[u8],
        at: Position,
        portion: &mut Portion,
    ) -> bool {
        let at = (at.record, at.line);
        let (text, patched) = match self.check(found, raw) {
            Ok(texts) => texts,
            Err(reason) => {
                portion.push_bad(at, raw, reason);
                return true;
            }
        };
        let mut means = self.means.iter().copied();
        let mut field = |piece: &FieldPlace| {
            let means = means.next().unwrap_or_default();
            field(*piece, found, (text, patched), &self.nulls, means)
        };
        let pieces = &found.pieces;
        match &self.chosen {
            None => portion.push_row(at, raw, pieces.iter().map(&mut field)),
            Some(chosen) => {
                let chosen = chosen.iter().map(|at| pieces.get(*at));
                let fields = chosen.map(|piece| piece.map_or(Field::Null, &mut field));
                portion.push_row(at, raw, fields)
            }
        }
    }

    /// Puts whole records into the portion. `first` is the position of the first of them.
    fn take_all(&self, text: &[u8], first: Position, portion: &mut Portion) {
        let mut found = Record::default();
        let most = self.columns.unwrap_or_default();
        let (mut rest, mut at) = (text, first);
        while !rest.is_empty() && found.scan(rest, self.style, most, true) == ScanEnd::Whole {
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
    /// Splits unsplit records into rows. Records that were read as rows stay unchanged.
    pub fn split(&mut self) {
        if let Some(unsplit) = self.unsplit.take() {
            let text = unsplit.text.as_bytes();
            unsplit.splitter.take_all(text, unsplit.first, self);
            self.text = unsplit.into_text();
        }
    }
}

impl Record {
    /// Returns a field's value, and its text in the file if that may mean NULL, which needs a field
    /// without quotes. `texts` holds the record, and the text of its decoded fields.
    pub(super) fn text<'a>(
        &self,
        piece: FieldPlace,
        (text, patched): (&'a str, &'a str),
    ) -> (&'a str, Option<&'a str>) {
        // Delimiters, quotes and escapes are ASCII, so text can be cut at each of them.
        let cut = |text: &'a str, (from, to)| text.get(from..to).unwrap_or_default();
        match piece {
            FieldPlace::Bare(from, to) => {
                let value = cut(text, (from, to));
                (value, Some(value))
            }
            FieldPlace::Quoted(from, to) => (cut(text, (from, to)), None),
            FieldPlace::Patched(from, to) => (cut(patched, (from, to)), None),
            FieldPlace::Escaped(at) => match self.escaped.get(at) {
                Some(field) => (cut(patched, field.taken), Some(cut(text, field.raw))),
                None => ("", None),
            },
        }
    }
}

/// Converts a field. Only a field without quotes can be NULL or a number. In a column of JSON it is
/// JSON text, as for COPY. In other columns, a JSON array stays an array for columns of arrays, and
/// an object stays one if the column has no type yet.
fn field<'a>(
    piece: FieldPlace,
    found: &Record,
    texts: (&'a str, &'a str),
    nulls: &[Box<str>],
    means: Means,
) -> Field<'a> {
    let (text, raw) = found.text(piece, texts);
    let begins = match means {
        Means::Looks => text.starts_with(['{', '[']),
        Means::Itself => text.starts_with('['),
        Means::Json => false,
    };
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if raw.is_some_and(|raw| nulls.iter().any(|null| **null == *raw)) {
        Field::Null
    } else if means == Means::Json || begins && is_json() {
        Field::Json(text)
    } else if raw.is_none() {
        Field::Text(text)
    } else {
        Field::Plain(text)
    }
}

impl Splitter {
    /// Returns the text of a record, and of its decoded fields, if it is valid as far as that can
    /// be known without the types of its columns.
    fn check<'a>(&self, found: &'a Record, raw: &'a [u8]) -> Result<(&'a str, &'a str), String> {
        self.check_form(found, raw).map_err(|reason| {
            let hint = match self.doubts {
                true => doubt::hint(raw, self.style),
                false => "",
            };
            format!("{reason}{hint}")
        })?;
        skip::no_nul(raw)?;
        let texts = (skip::utf8(raw)?, taken_out(&found.scratch)?);
        if self.doubts {
            doubt::check(found, raw, self)?;
        }
        Ok(texts)
    }

    fn check_form(&self, found: &Record, raw: &[u8]) -> Result<(), String> {
        if let Some(field) = found.beyond {
            return Err(format!(
                "has text behind the closing quote of field {field}; a quote within quotes is written twice, and a field that \
                 holds quotes and does not begin with one needs none around it (--quote none: no quotes have a meaning)"
            ));
        }
        let columns = self.columns.unwrap_or(found.count);
        if !(columns..=columns + self.spare).contains(&found.count) {
            let s = if found.count == 1 { "" } else { "s" };
            return Err(format!(
                "has {} field{s} where {columns} are expected",
                found.count
            ));
        }
        if found.stray {
            let what = match self.style.line_end {
                b'\n' => "a carriage return",
                _ => "a line feed",
            };
            return Err(format!(
                "has {what} outside of quotes, which ends no line in this file"
            ));
        }
        let spare = found.count - columns;
        if spare > 0 && !is_behind_empty(raw, self.style.delimiter, spare) {
            return Err(
                "has a value behind the last column that the header names; name it there".into(),
            );
        }
        Ok(())
    }
}

/// Returns true if the last `fields` fields are empty.
fn is_behind_empty(raw: &[u8], delimiter: u8, fields: usize) -> bool {
    let mut last = raw.iter().rev().take(fields);
    last.all(|byte| *byte == delimiter)
}

/// Returns the decoded text of a record: escapes can stand for any bytes.
fn taken_out(scratch: &[u8]) -> Result<&str, String> {
    if memchr::memchr(0, scratch).is_some() {
        return Err("has an escape of a NUL character, which no column of text can hold".into());
    }
    let wrong = |_| "has escapes that together are no UTF-8".to_owned();
    std::str::from_utf8(scratch).map_err(wrong)
}
