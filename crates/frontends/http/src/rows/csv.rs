//! CSV as PostgreSQL's COPY reads it: a quote may stand anywhere in a field, `""` within quotes is
//! one quote, and only a field without quotes can be NULL, or a number. (`csv-core` does not tell
//! whether a field was quoted.)

use windrow_core::{Fault, FaultClass, Name, Value};

use crate::query::CsvStyle;
use crate::rows::MAX_COLUMNS;
use crate::rows::object::check_names;

/// The state between two pieces of a body.
#[derive(Debug)]
pub(crate) struct Csv {
    style: CsvStyle,
    in_quotes: bool,
}

impl Csv {
    pub(crate) fn new(style: CsvStyle) -> Self {
        Self {
            style,
            in_quotes: false,
        }
    }

    /// True in the middle of a quoted field.
    pub(crate) fn in_quotes(&self) -> bool {
        self.in_quotes
    }

    /// The place behind the record that ends first in this text, which follows what was given
    /// before. A doubled quote ends and begins a quoted stretch, so counting quotes is enough.
    pub(crate) fn cut(&mut self, text: &[u8]) -> Option<usize> {
        let end = memchr::memchr2_iter(b'"', b'\n', text).find(|at| match text.get(*at) {
            Some(b'\n') => !self.in_quotes,
            _ => {
                self.in_quotes = !self.in_quotes;
                false
            }
        });
        end.map(|at| at + 1)
    }

    /// The names of the columns.
    ///
    /// # Errors
    /// A name that is none or occurs twice, too many of them, text that is not UTF-8.
    pub(crate) fn header(&self, record: &[u8]) -> Result<Vec<Name>, Fault> {
        let mut names: Vec<Name> = Vec::new();
        for field in Fields::of(utf8(record).map_err(invalid)?, self.style.delimiter) {
            if names.len() == MAX_COLUMNS {
                return Err(invalid(format!(
                    "the header has more than {MAX_COLUMNS} columns, which is the limit"
                )));
            }
            if matches!(field, Field::Plain(text) if text.contains('\r')) {
                // Else all rows would be a part of it, and be passed over without a word.
                let message = "the header has a line end of CR alone; lines end with LF or CRLF";
                return Err(invalid(message.to_owned()));
            }
            names.push(field.text().into());
        }
        check_names(&names)?;
        Ok(names)
    }

    /// The values of one record.
    ///
    /// # Errors
    /// A number of fields other than the header's, text that is not UTF-8.
    pub(crate) fn values(&self, record: &[u8], columns: usize) -> Result<Vec<Value>, String> {
        let mut values = Vec::with_capacity(columns);
        let mut count = 0;
        for field in Fields::of(utf8(record)?, self.style.delimiter) {
            count += 1;
            if count <= columns {
                values.push(self.value(field));
            }
        }
        if count != columns {
            return Err(format!(
                "the row has {count} fields, the header has {columns}"
            ));
        }
        Ok(values)
    }

    fn value(&self, field: Field<'_>) -> Value {
        match field {
            Field::Plain(text) if *text == *self.style.null => Value::Null,
            Field::Plain(text) if !is_json(text) => Value::from_field(text),
            field => {
                let text = field.text();
                // For a column of text it is the same text; for a json column it must not become a
                // JSON string.
                if is_json(&text) {
                    Value::Json(text)
                } else {
                    Value::Text(text)
                }
            }
        }
    }
}

/// True for a JSON object or array.
fn is_json(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn utf8(record: &[u8]) -> Result<&str, String> {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    std::str::from_utf8(record).map_err(|error| {
        format!(
            "the text is not UTF-8 from byte {} of the row on",
            error.valid_up_to() + 1
        )
    })
}

fn invalid(message: String) -> Fault {
    Fault::new(FaultClass::Invalid, "22P04", message)
}

/// A field as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field<'t> {
    Plain(&'t str),
    Quoted(&'t str),
}

impl Field<'_> {
    fn text(self) -> Box<str> {
        match self {
            Self::Plain(text) => text.into(),
            Self::Quoted(raw) => unquote(raw).into(),
        }
    }
}

/// Takes the quotes off: outside of quotes they only switch, within them `""` is one quote.
fn unquote(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut within = false;
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '"' {
            text.push(c);
        } else if within && chars.peek() == Some(&'"') {
            chars.next();
            text.push('"');
        } else {
            within = !within;
        }
    }
    text
}

/// The fields of one record.
struct Fields<'t> {
    rest: Option<&'t str>,
    delimiter: u8,
}

impl<'t> Fields<'t> {
    fn of(record: &'t str, delimiter: u8) -> Self {
        Self {
            rest: Some(record),
            delimiter,
        }
    }
}

impl<'t> Iterator for Fields<'t> {
    type Item = Field<'t>;

    fn next(&mut self) -> Option<Field<'t>> {
        let rest = self.rest.take()?;
        let (mut within, mut quoted) = (false, false);
        let end = memchr::memchr2_iter(b'"', self.delimiter, rest.as_bytes()).find(|at| {
            if rest.as_bytes().get(*at) == Some(&self.delimiter) {
                return !within;
            }
            (within, quoted) = (!within, true);
            false
        });
        // The delimiter is ASCII, so the text can be cut on both of its sides.
        let text = match end.and_then(|at| Some((rest.get(..at)?, rest.get(at + 1..)?))) {
            Some((text, behind)) => {
                self.rest = Some(behind);
                text
            }
            None => rest,
        };
        Some(if quoted {
            Field::Quoted(text)
        } else {
            Field::Plain(text)
        })
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
