//! The markers that a move across databases keeps in the destination.

use crate::name::{Name, TableName};
use crate::shape::{Key, OnConflict, Op, Returning, Shape, ShapeParts};
use crate::value::Value;

/// Says that a row of a source has been written. Written in the transaction that writes the row; it
/// goes once the row is gone from the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Which move, at most [`Moved::MOST_BYTES`] of ASCII: the same for all that move from one
    /// table.
    pub relocation: Box<str>,
    /// Which row, at most [`Moved::MOST_BYTES`]: the tag of the columns that name it,
    /// [`Moved::TAG_BYTES`] long, then the row's name.
    pub key: Box<str>,
    /// By which batch, at most [`Moved::MOST_BYTES`] of ASCII.
    pub batch: Box<str>,
}

impl Moved {
    /// The table that holds markers; it lies where the connection's own tables do.
    pub const TABLE: &'static str = "windrow_moved";
    /// Its column for [`Moved::relocation`]; the first of its key.
    pub const MOVE: &'static str = "move";
    /// Its column for [`Moved::key`]; the second of its key.
    pub const KEY: &'static str = "key";
    /// Its column for [`Moved::batch`].
    pub const BATCH: &'static str = "batch";
    /// The most bytes of each: what a key can hold everywhere.
    pub const MOST_BYTES: usize = 128;
    /// The bytes of a tag.
    pub const TAG_BYTES: usize = 8;

    /// The shape of the write that makes a marker, and fails where there is one.
    pub fn made() -> Shape {
        let columns = [Self::MOVE, Self::KEY, Self::BATCH].map(Name::from).into();
        Self::shape(Op::Insert, columns, Returning::Nothing)
    }

    /// The shape of the read that gives a marker's batch.
    pub fn read() -> Shape {
        let batch = Returning::Columns([Self::BATCH].map(Name::from).into());
        Self::shape(Op::Get, Box::default(), batch)
    }

    /// The shape of the write that gives a marker to another batch.
    pub fn adopted() -> Shape {
        let batch = [Self::BATCH].map(Name::from).into();
        Self::shape(Op::Update, batch, Returning::Nothing)
    }

    /// The shape of the write that takes out all markers that a batch has by now.
    pub fn gone() -> Shape {
        let mut parts = Self::parts(Op::Delete, Box::default(), Returning::Nothing);
        parts.key = Key::Columns([Self::MOVE, Self::BATCH].map(Name::from).into());
        Shape::new(parts)
    }

    fn shape(op: Op, columns: Box<[Name]>, returning: Returning) -> Shape {
        Shape::new(Self::parts(op, columns, returning))
    }

    fn parts(op: Op, columns: Box<[Name]>, returning: Returning) -> ShapeParts {
        ShapeParts {
            op,
            table: TableName::bare(Self::TABLE),
            columns,
            key: Key::Columns([Self::MOVE, Self::KEY].map(Name::from).into()),
            on_conflict: OnConflict::Error,
            returning,
        }
    }

    /// The row of a write of [`Moved::made`].
    pub fn row(&self) -> [Value; 3] {
        [&self.relocation, &self.key, &self.batch].map(|text| Value::text(&**text))
    }

    /// The row of a write of [`Moved::adopted`].
    pub fn adopted_row(&self) -> [Value; 3] {
        [&self.batch, &self.relocation, &self.key].map(|text| Value::text(&**text))
    }

    /// The row of a write of [`Moved::gone`].
    pub fn gone_row(&self) -> [Value; 2] {
        [&self.relocation, &self.batch].map(|text| Value::text(&**text))
    }

    /// The row of a read of [`Moved::read`].
    pub fn key_row(&self) -> [Value; 2] {
        [&self.relocation, &self.key].map(|text| Value::text(&**text))
    }
}
