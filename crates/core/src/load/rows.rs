//! Rows whose values are still texts, packed into one buffer.

use std::sync::Arc;

use crate::value::Value;

/// A value as the source gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// NULL.
    Null,
    /// A field of a format without types, such as CSV: the column decides what it means.
    Plain(&'a str),
    /// Text, from a format that distinguishes texts from numbers.
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
    /// Returns the value that a write of this field alone would have.
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

/// Rows of the same number of fields. Clearing them keeps their memory. A clone shares the memory
/// until one of the two is changed.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    columns: usize,
    packed: Arc<Packed>,
}

#[derive(Clone, Debug, Default)]
struct Packed {
    data: String,
    /// Binary fields, which are not text.
    bytes: Vec<u8>,
    /// The kind of each field, and its end in its buffer.
    ends: Vec<(Kind, u32)>,
    /// The line (or record) of the source on which each row began, from 1.
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
    /// The most bytes of one portion: 1 GiB. [`Rows::push`] refuses a row beyond it.
    pub const MOST_BYTES: usize = 1 << 30;

    /// The capacity of a buffer that is kept when the rows are cleared. A larger one came from a
    /// few very long rows.
    pub const KEPT_BYTES: usize = 8 << 20;

    /// Returns no rows, with this number of columns.
    pub fn new(columns: usize) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// Adds a row. Missing fields become NULL and surplus fields are ignored: the reader of the
    /// source checks their number. Returns false without adding the row if the portion would exceed
    /// [`Rows::MOST_BYTES`].
    pub fn push<'a>(&mut self, line: u64, fields: impl IntoIterator<Item = Field<'a>>) -> bool {
        let packed = Arc::make_mut(&mut self.packed);
        let before = (packed.data.len(), packed.bytes.len(), packed.ends.len());
        let mut fields = fields.into_iter();
        for _ in 0..self.columns {
            if !packed.add(fields.next().unwrap_or(Field::Null)) {
                packed.data.truncate(before.0);
                packed.bytes.truncate(before.1);
                packed.ends.truncate(before.2);
                return false;
            }
        }
        packed.lines.push(line);
        true
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.packed.lines.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.packed.lines.is_empty()
    }

    /// Returns the number of fields in each row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the bytes of all values.
    pub fn bytes(&self) -> usize {
        self.packed.data.len() + self.packed.bytes.len()
    }

    /// Removes all rows. Keeps the memory, except that of very long rows ([`Rows::KEPT_BYTES`]).
    pub fn clear(&mut self) {
        let Some(packed) = Arc::get_mut(&mut self.packed) else {
            self.packed = Arc::default();
            return;
        };
        packed.data.clear();
        packed.data.shrink_to(Self::KEPT_BYTES);
        packed.bytes.clear();
        packed.bytes.shrink_to(Self::KEPT_BYTES);
        packed.ends.clear();
        packed.lines.clear();
    }

    /// Returns the line (or record) of the source on which each row began, from 1.
    pub fn lines(&self) -> &[u64] {
        &self.packed.lines
    }

    /// Returns all fields, row by row.
    pub fn fields(&self) -> Fields<'_> {
        Fields {
            rows: &self.packed,
            next: 0,
            text: 0,
            bytes: 0,
        }
    }

    /// Returns the fields of one row, by its position.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Field<'_>> {
        let next = row.saturating_mul(self.columns);
        let before = self.packed.ends.get(..next).unwrap_or_default();
        // Each field stores the end of its buffer when it was added.
        let end = |is_bytes: bool| {
            let mut before = before.iter().rev();
            let last = before.find(|(kind, _)| (*kind == Kind::Bytes) == is_bytes);
            last.map_or(0, |(_, end)| *end as usize)
        };
        let fields = Fields {
            rows: &self.packed,
            next,
            text: end(false),
            bytes: match self.packed.bytes.is_empty() {
                true => 0,
                false => end(true),
            },
        };
        fields.take(self.columns)
    }
}

impl Packed {
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
                if bytes.len() > Rows::MOST_BYTES - self.bytes.len() {
                    return false;
                }
                if bytes.len() > Rows::KEPT_BYTES {
                    self.bytes.reserve_exact(bytes.len());
                }
                self.bytes.extend_from_slice(bytes);
                (Kind::Bytes, "")
            }
        };
        if text.len() > Rows::MOST_BYTES - self.data.len() {
            return false;
        }
        if text.len() > Rows::KEPT_BYTES {
            // Exactly: another row of this length is unlikely.
            self.data.reserve_exact(text.len());
        }
        self.data.push_str(text);
        let end = match kind {
            Kind::Bytes => self.bytes.len(),
            _ => self.data.len(),
        };
        // Both buffers are kept below 4 GiB.
        self.ends
            .push((kind, u32::try_from(end).unwrap_or(u32::MAX)));
        true
    }
}

/// The fields of [`Rows`], in order.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rows: &'a Packed,
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
            let one = |row| rows.row(row).collect::<Vec<_>>();
            assert_eq!((one(0), one(1)), (first.to_vec(), second.to_vec()));
            assert_eq!(
                (rows.len(), rows.lines(), rows.bytes()),
                (2, &[1, 7][..], 12)
            );
            rows.clear();
            assert!(rows.is_empty() && rows.fields().next().is_none());
        }
    }

    #[test]
    fn a_clone_keeps_its_rows_and_great_lengths_are_not_kept() {
        let long = "x".repeat(Rows::KEPT_BYTES + 1);
        let mut rows = Rows::new(1);
        rows.push(1, [Field::Plain(&long)]);
        let before = rows.clone();
        rows.push(2, [Field::Plain("b")]);
        rows.clear();
        assert_eq!((before.lines(), rows.len()), (&[1][..], 0));
        rows.push(3, [Field::Text(&long)]);
        rows.clear();
        assert_eq!(rows.packed.data.capacity(), Rows::KEPT_BYTES);
        assert_eq!(before.fields().next(), Some(Field::Plain(&long)));
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
