//! CSV: a field that begins with a quote ends with the next one, and `""` within it is one quote;
//! in any other field a quote is an ordinary character. Only a field without quotes can be NULL, or
//! a number. (`csv-core` does not report whether a field was quoted.)

use windrow_core::load::other_delimiter;
use windrow_core::{Fault, FaultClass, Name, Value};

use crate::query::CsvStyle;
use crate::rows::MAX_COLUMNS;
use crate::rows::object::check_names;

/// The state between two pieces of a body.
#[derive(Debug)]
pub(crate) struct Csv {
    style: CsvStyle,
    delimiter: u8,
    place: Place,
}

/// The position in a field at which a piece of a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before its first character.
    Start,
    /// In a field without quotes, or after the closing quote.
    Bare,
    /// Within quotes.
    Quoted,
    /// After a quote within quotes: the closing one, or the first of two.
    Behind,
}

impl Csv {
    pub(crate) fn new(style: CsvStyle) -> Self {
        Self {
            delimiter: style.delimiter.unwrap_or(b','),
            style,
            place: Place::Start,
        }
    }

    /// True within a quoted field.
    pub(crate) fn in_quotes(&self) -> bool {
        self.place == Place::Quoted
    }

    /// Returns the offset after the first record that ends in this text, which follows the earlier
    /// texts.
    pub(crate) fn cut(&mut self, text: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let is_quote = rest.first() == Some(&b'"');
            match self.place {
                Place::Quoted => {
                    at += memchr::memchr(b'"', rest)? + 1;
                    self.place = Place::Behind;
                }
                Place::Start | Place::Behind if is_quote => {
                    at += 1;
                    self.place = Place::Quoted;
                }
                Place::Start | Place::Behind | Place::Bare => {
                    self.place = Place::Bare;
                    let end = memchr::memchr2(self.delimiter, b'\n', rest)?;
                    self.place = Place::Start;
                    at += end + 1;
                    if rest.get(end) == Some(&b'\n') {
                        return Some(at);
                    }
                }
            }
        }
        None
    }

    /// Returns the names of the columns.
    ///
    /// # Errors
    /// An invalid name or one that occurs twice, too many names, text that is not UTF-8.
    pub(crate) fn header(&self, record: &[u8]) -> Result<Vec<Name>, Fault> {
        let mut names: Vec<Name> = Vec::new();
        let record = utf8(record).map_err(invalid)?;
        for field in Fields::of(record, self.delimiter) {
            if names.len() == MAX_COLUMNS {
                return Err(invalid(format!(
                    "the header has more than {MAX_COLUMNS} columns, which is the limit"
                )));
            }
            if field == Field::Beyond {
                return Err(invalid(beyond(names.len() + 1)));
            }
            if matches!(field, Field::Plain(text) if text.contains('\r')) {
                // Otherwise all rows would be part of the header, and be lost without an error.
                let message = "the header has a line end of CR alone; lines end with LF or CRLF";
                return Err(invalid(message.to_owned()));
            }
            names.push(field.text().into());
        }
        check_names(&names)?;
        match names.len() == 1 && self.style.delimiter.is_none() {
            true => self.check_delimiter(record).map(|()| names),
            false => Ok(names),
        }
    }

    /// Refuses a header of one column that seems to use another delimiter, if the request does not
    /// name one.
    fn check_delimiter(&self, header: &str) -> Result<(), Fault> {
        let Some(other) = other_delimiter(header, self.delimiter) else {
            return Ok(());
        };
        let shown = match other {
            '\t' => "\\t".to_owned(),
            other => other.to_string(),
        };
        let given = self.delimiter;
        Err(invalid(format!(
            "the header has no '{}' and is one column so; if '{shown}' stands between its columns, say ?delimiter=%{:02X}, \
             and ?delimiter=%{given:02X} if it is one column",
            char::from(given),
            u32::from(other),
        )))
    }

    /// Returns the values of one record.
    ///
    /// # Errors
    /// A number of fields other than the header's, text that is not UTF-8.
    pub(crate) fn values(&self, record: &[u8], columns: usize) -> Result<Vec<Value>, String> {
        let mut values = Vec::with_capacity(columns);
        let mut count = 0;
        for field in Fields::of(utf8(record)?, self.delimiter) {
            count += 1;
            if field == Field::Beyond {
                return Err(beyond(count));
            }
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
                // A text column stores the same text; in a json column it must not become a JSON
                // string.
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

fn beyond(field: usize) -> String {
    format!(
        "there is text behind the closing quote of field {field}; a quote within quotes is written twice"
    )
}

fn invalid(message: String) -> Fault {
    Fault::new(FaultClass::Invalid, "22P04", message)
}

/// A field in the form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field<'t> {
    Plain(&'t str),
    /// The text between its quotes.
    Quoted(&'t str),
    /// Text after the closing quote.
    Beyond,
}

impl Field<'_> {
    fn text(self) -> Box<str> {
        match self {
            Self::Plain(text) => text.into(),
            Self::Quoted(raw) => raw.replace("\"\"", "\"").into(),
            Self::Beyond => "".into(),
        }
    }
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
        // Delimiters and quotes are ASCII, so the text can be split on both sides of them.
        let Some(inside) = rest.strip_prefix('"') else {
            let end = memchr::memchr(self.delimiter, rest.as_bytes());
            let cut = end.and_then(|at| Some((rest.get(..at)?, rest.get(at + 1..)?)));
            self.rest = cut.map(|(_, behind)| behind);
            return Some(Field::Plain(cut.map_or(rest, |(text, _)| text)));
        };
        let close = closing(inside.as_bytes());
        let (text, behind) = inside.split_at_checked(close).unwrap_or((inside, ""));
        let behind = behind.strip_prefix('"').unwrap_or(behind);
        Some(match behind.as_bytes().first() {
            None => Field::Quoted(text),
            Some(first) if *first == self.delimiter => {
                self.rest = behind.get(1..);
                Field::Quoted(text)
            }
            Some(_) => Field::Beyond,
        })
    }
}

/// Returns the offset of the quote that closes a field; the end if none does.
fn closing(inside: &[u8]) -> usize {
    let mut quotes = memchr::memchr_iter(b'"', inside);
    while let Some(at) = quotes.next() {
        if inside.get(at + 1) != Some(&b'"') {
            return at;
        }
        quotes.next();
    }
    inside.len()
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
