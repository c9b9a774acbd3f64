//! Copies a batch for the writer thread.
//!
//! An executor only borrows its units, and the thread must own its batch. Cloning every value would
//! cost an allocation for each text. So all values are copied into three buffers, which are used
//! again for the next batch.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use windrow_core::{Shape, Unit, Value, Write};

/// Bytes that a buffer may keep between two batches.
const KEEP: usize = 1 << 20;

/// A value within its batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Datum<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Number(&'a str),
    Text(&'a str),
    Bytes(&'a [u8]),
    Json(&'a str),
}

impl Datum<'_> {
    /// Returns an owned value.
    pub(crate) fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::Int(n) => Value::Int(n),
            Self::Number(digits) => Value::Number(digits.into()),
            Self::Text(text) => Value::text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes.into()),
            Self::Json(text) => Value::Json(text.into()),
        }
    }
}

/// The units of one batch.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    shapes: Vec<Arc<Shape>>,
    places: HashMap<Arc<Shape>, usize, FixedState>,
    writes: Vec<Entry>,
    /// The end of each unit in `writes`.
    units: Vec<usize>,
    cells: Vec<Cell>,
    text: String,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    shape: usize,
    /// The end of the write's values in `cells`.
    end: usize,
}

#[derive(Clone, Copy, Debug)]
enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Number(Span),
    Text(Span),
    Bytes(Span),
    Json(Span),
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    len: usize,
}

/// A write: the number of its shape, and its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedWrite<'a> {
    packed: &'a Packed,
    /// The number of the write's shape.
    pub(crate) shape: usize,
    cells: &'a [Cell],
}

impl Packed {
    /// Replaces the contents by these units.
    pub(crate) fn fill(&mut self, units: &[Unit]) {
        self.clear();
        for unit in units {
            for write in unit.writes() {
                self.push(write);
            }
            self.units.push(self.writes.len());
        }
    }

    /// Returns the number of units.
    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// Returns the number of writes.
    pub(crate) fn writes(&self) -> usize {
        self.writes.len()
    }

    /// Returns the number of shapes.
    pub(crate) fn shapes(&self) -> usize {
        self.shapes.len()
    }

    /// Returns the numbers of a unit's writes in the batch.
    pub(crate) fn unit(&self, unit: usize) -> Range<usize> {
        let end = self.units.get(unit).copied().unwrap_or(0);
        let start = unit.checked_sub(1).and_then(|u| self.units.get(u));
        start.copied().unwrap_or(0)..end
    }

    /// Returns a shape by its number.
    pub(crate) fn shape(&self, shape: usize) -> Option<&Arc<Shape>> {
        self.shapes.get(shape)
    }

    /// Returns a write by its number in the batch.
    pub(crate) fn write(&self, write: usize) -> Option<PackedWrite<'_>> {
        let entry = self.writes.get(write)?;
        let before = write.checked_sub(1).and_then(|w| self.writes.get(w));
        Some(PackedWrite {
            packed: self,
            shape: entry.shape,
            cells: self.cells.get(before.map_or(0, |e| e.end)..entry.end)?,
        })
    }

    fn clear(&mut self) {
        self.shapes.clear();
        self.places.clear();
        self.writes.clear();
        self.units.clear();
        self.cells.clear();
        self.text.clear();
        self.bytes.clear();
        self.writes.shrink_to(KEEP / size_of::<Entry>());
        self.units.shrink_to(KEEP / size_of::<usize>());
        self.cells.shrink_to(KEEP / size_of::<Cell>());
        self.text.shrink_to(KEEP);
        self.bytes.shrink_to(KEEP);
    }

    fn push(&mut self, write: &Write) {
        let shape = self.place(&write.shape);
        for value in write.row() {
            let cell = match value {
                Value::Null => Cell::Null,
                Value::Bool(b) => Cell::Bool(*b),
                Value::Int(n) => Cell::Int(*n),
                Value::Number(text) => Cell::Number(self.keep(text)),
                Value::Text(text) => Cell::Text(self.keep(text)),
                Value::Json(text) => Cell::Json(self.keep(text)),
                Value::Bytes(bytes) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(bytes);
                    let len = bytes.len();
                    Cell::Bytes(Span { start, len })
                }
            };
            self.cells.push(cell);
        }
        let end = self.cells.len();
        self.writes.push(Entry { shape, end });
    }

    fn keep(&mut self, text: &str) -> Span {
        let start = self.text.len();
        self.text.push_str(text);
        let len = text.len();
        Span { start, len }
    }

    /// Returns the number of a shape, which is mostly that of the write before.
    fn place(&mut self, shape: &Arc<Shape>) -> usize {
        if let Some(last) = self.writes.last()
            && self.shapes.get(last.shape).is_some_and(|s| s == shape)
        {
            return last.shape;
        }
        let next = self.shapes.len();
        let place = *self.places.entry(shape.clone()).or_insert(next);
        if place == next {
            self.shapes.push(shape.clone());
        }
        place
    }
}

impl<'a> PackedWrite<'a> {
    /// Returns the number of the row's values.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns the values of the row.
    pub(crate) fn values(&self) -> impl Iterator<Item = Datum<'a>> + use<'a> {
        let packed = self.packed;
        self.cells.iter().map(|cell| packed.datum(*cell))
    }
}

impl Packed {
    fn datum(&self, cell: Cell) -> Datum<'_> {
        match cell {
            Cell::Null => Datum::Null,
            Cell::Bool(b) => Datum::Bool(b),
            Cell::Int(n) => Datum::Int(n),
            Cell::Number(span) => Datum::Number(self.text(span)),
            Cell::Text(span) => Datum::Text(self.text(span)),
            Cell::Json(span) => Datum::Json(self.text(span)),
            Cell::Bytes(span) => {
                let range = span.start..span.start + span.len;
                Datum::Bytes(self.bytes.get(range).unwrap_or_default())
            }
        }
    }

    fn text(&self, span: Span) -> &str {
        self.text
            .get(span.start..span.start + span.len)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::shape::ShapeParts;
    use windrow_core::{Key, OnConflict, Op, Returning, TableName};

    use super::*;

    fn shape(column: &str) -> Arc<Shape> {
        Arc::new(Shape::new(ShapeParts {
            op: Op::Insert,
            table: TableName::bare("t"),
            columns: [column.into()].into(),
            key: Key::Primary,
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        }))
    }

    #[test]
    fn gives_back_what_was_put_in() {
        let (a, b) = (shape("a"), shape("b"));
        let write = |shape: &Arc<Shape>, v: Value| Write::new(shape.clone(), [v]);
        let units = [
            Unit::one(write(&a, "é".into())),
            Unit::of([]),
            Unit::of([
                write(&b, Value::number("1.50")),
                write(&shape("a"), Value::Bytes([0, 255].into())),
            ]),
            Unit::one(write(&b, Value::Json("[]".into()))),
        ];
        let mut packed = Packed::default();
        for _ in 0..2 {
            packed.fill(&units);
            assert_eq!(
                (packed.units(), packed.writes(), packed.shapes()),
                (4, 4, 2)
            );
            let ranges: Vec<_> = (0..4).map(|u| packed.unit(u)).collect();
            assert_eq!(ranges, [0..1, 1..1, 1..3, 3..4]);
            let got: Vec<_> = (0..4)
                .map(|w| {
                    let write = packed.write(w).unwrap();
                    (write.shape, write.values().next().unwrap())
                })
                .collect();
            assert_eq!(
                got,
                [
                    (0, Datum::Text("é")),
                    (1, Datum::Number("1.50")),
                    (0, Datum::Bytes(&[0, 255])),
                    (1, Datum::Json("[]")),
                ]
            );
        }
        packed.fill(&[]);
        assert_eq!((packed.units(), packed.writes()), (0, 0));
    }
}
