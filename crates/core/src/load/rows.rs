//! Rows whose values are still texts, packed into one buffer.

use crate::value::Value;

/// A value as a source gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// No value.
    Null,
    /// A field of a format that knows no types, such as CSV: what it is, the column decides.
    Plain(&'a str),
    /// Text, from a format that tells it apart from numbers.
    Text(&'a str),
    /// A number, in decimal.
    Number(&'a str),
    /// True or false.
    Bool(bool),
    /// An array or an object of JSON, as its text.
    Json(&'a str),
    /// Binary data.
    Bytes(&'a [u8]),
}

impl Field<'_> {
    /// The value that a write of this field alone has.
    pub fn value(&self) -> Value {
        match *self {
            Self::Null => Value::Null,
            Self::Plain(text) => Value::from_field(text),
            Self::Text(text) => Value::text(text),
            Self::Number(text) => Value::number(text),
            Self::Bool(truth) => Value::Bool(truth),
            Self::Json(text) => Value::Json(text.into()),
            Self::Bytes(bytes) => Value::Bytes(bytes.into()),
        }
    }
}

/// Rows of the same number of fields. Cleared and filled again, it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    columns: usize,
    data: String,
    /// Binary fields, which are not text.
    bytes: Vec<u8>,
    /// Of each field its kind and where it ends in its buffer.
    ends: Vec<(Kind, u32)>,
    /// Of each row the line (or record) of the source that it began on, from 1.
    lines: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    Plain,
    Text,
    Number,
    True,
    False,
    Json,
    Bytes,
}

impl Rows {
    /// The most bytes of one portion: 1 GiB. [`Rows::push`] refuses a row that would pass it.
    pub const MOST_BYTES: usize = 1 << 30;

    /// None, of so many columns.
    pub fn new(columns: usize) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// Adds a row. Fields that are missing are NULL, those past the last column are left out: who reads a source checks
    /// their number. False, and nothing is added, if the portion would have more than [`Rows::MOST_BYTES`].
    pub fn push<'a>(&mut self, line: u64, fields: impl IntoIterator<Item = Field<'a>>) -> bool {
        let before = (self.data.len(), self.bytes.len(), self.ends.len());
        let mut fields = fields.into_iter();
        for _ in 0..self.columns {
            if !self.add(fields.next().unwrap_or(Field::Null)) {
                self.data.truncate(before.0);
                self.bytes.truncate(before.1);
                self.ends.truncate(before.2);
                return false;
            }
        }
        self.lines.push(line);
        true
    }

    fn add(&mut self, field: Field<'_>) -> bool {
        let (kind, text) = match field {
            Field::Null => (Kind::Null, ""),
            Field::Plain(text) => (Kind::Plain, text),
            Field::Text(text) => (Kind::Text, text),
            Field::Number(text) => (Kind::Number, text),
            Field::Bool(true) => (Kind::True, ""),
            Field::Bool(false) => (Kind::False, ""),
            Field::Json(text) => (Kind::Json, text),
            Field::Bytes(bytes) => {
                if bytes.len() > Self::MOST_BYTES - self.bytes.len() {
                    return false;
                }
                self.bytes.extend_from_slice(bytes);
                (Kind::Bytes, "")
            }
        };
        if text.len() > Self::MOST_BYTES - self.data.len() {
            return false;
        }
        self.data.push_str(text);
        let end = match kind {
            Kind::Bytes => self.bytes.len(),
            _ => self.data.len(),
        };
        // Both buffers are kept below what 32 bits can say.
        self.ends
            .push((kind, u32::try_from(end).unwrap_or(u32::MAX)));
        true
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Fields of each row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> usize {
        self.data.len() + self.bytes.len()
    }

    /// Takes all rows out, and keeps the memory.
    pub fn clear(&mut self) {
        self.data.clear();
        self.bytes.clear();
        self.ends.clear();
        self.lines.clear();
    }

    /// Of each row the line (or record) of the source that it began on, from 1.
    pub fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// All fields, row by row: those of the first row, those of the second ...
    pub fn fields(&self) -> Fields<'_> {
        Fields {
            rows: self,
            next: 0,
            text: 0,
            bytes: 0,
        }
    }
}

/// The fields of [`Rows`], in order.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rows: &'a Rows,
    next: usize,
    text: usize,
    bytes: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let (kind, end) = *self.rows.ends.get(self.next)?;
        self.next += 1;
        let end = end as usize;
        if kind == Kind::Bytes {
            let from = std::mem::replace(&mut self.bytes, end);
            return Some(Field::Bytes(self.rows.bytes.get(from..end)?));
        }
        let from = std::mem::replace(&mut self.text, end);
        let text = self.rows.data.get(from..end)?;
        Some(match kind {
            Kind::Null | Kind::Bytes => Field::Null,
            Kind::Plain => Field::Plain(text),
            Kind::Text => Field::Text(text),
            Kind::Number => Field::Number(text),
            Kind::True => Field::Bool(true),
            Kind::False => Field::Bool(false),
            Kind::Json => Field::Json(text),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rows.ends.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Fields<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_went_in() {
        let first = [
            Field::Plain("1"),
            Field::Null,
            Field::Bytes(b"\0\xff"),
            Field::Bool(true),
        ];
        let second = [
            Field::Text("ä"),
            Field::Number("1.50"),
            Field::Json("[1]"),
            Field::Plain(""),
        ];
        let mut rows = Rows::new(4);
        for _ in 0..2 {
            assert!(rows.push(1, first));
            assert!(rows.push(7, second));
            let all: Vec<_> = rows.fields().collect();
            assert_eq!(all, [first, second].concat());
            assert_eq!(
                (rows.len(), rows.lines(), rows.bytes()),
                (2, &[1, 7][..], 12)
            );
            rows.clear();
            assert!(rows.is_empty() && rows.fields().next().is_none());
        }
    }

    #[test]
    fn short_rows_are_filled_with_nulls() {
        let mut rows = Rows::new(2);
        rows.push(1, [Field::Plain("a")]);
        rows.push(2, [Field::Plain("b"), Field::Null, Field::Plain("c")]);
        let all: Vec<_> = rows.fields().collect();
        assert_eq!(
            all,
            [
                Field::Plain("a"),
                Field::Null,
                Field::Plain("b"),
                Field::Null
            ]
        );
    }
}
