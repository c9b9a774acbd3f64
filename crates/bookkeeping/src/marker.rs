//! Markers in the destination of a move across databases.

use crate::name::{Name, TableName};
use crate::shape::{Key, OnConflict, Op, Returning, Shape, ShapeParts};
use crate::value::Value;

/// A marker: records that a row of the source has been written. The transaction that writes the row
/// inserts it; it is deleted after the row has been deleted from the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The name of the move, at most [`Moved::MOST_BYTES`] of ASCII; the same for all movers of one
    /// source table.
    pub relocation: Box<str>,
    /// The key of the marker, at most [`Moved::MOST_BYTES`]: a tag of the columns that name a row,
    /// [`Moved::TAG_BYTES`] long, and then the row's name.
    pub key: Box<str>,
    /// The name of the batch, at most [`Moved::MOST_BYTES`] of ASCII.
    pub batch: Box<str>,
}

impl Moved {
    /// The table of markers, in the default schema of the connection.
    pub const TABLE: &'static str = "windrow_moved";
    /// The column for [`Moved::relocation`], first of the primary key.
    pub const MOVE: &'static str = "move";
    /// The column for [`Moved::key`], second of the primary key.
    pub const KEY: &'static str = "key";
    /// The column for [`Moved::batch`].
    pub const BATCH: &'static str = "batch";
    /// Bytes of the longest field: a length that a key can have in every database.
    pub const MOST_BYTES: usize = 128;
    /// The bytes of a tag.
    pub const TAG_BYTES: usize = 8;

    /// Returns the shape of the write that inserts a marker, and fails if it exists.
    pub fn made() -> Shape {
        let columns = [Self::MOVE, Self::KEY, Self::BATCH].map(Name::from).into();
        Self::shape(Op::Insert, columns, Returning::Nothing)
    }

    /// Returns the shape of the read of a marker's batch.
    pub fn read() -> Shape {
        let batch = Returning::Columns([Self::BATCH].map(Name::from).into());
        Self::shape(Op::Get, Box::default(), batch)
    }

    /// Returns the shape of the write that assigns a marker to another batch.
    pub fn adopted() -> Shape {
        let batch = [Self::BATCH].map(Name::from).into();
        Self::shape(Op::Update, batch, Returning::Nothing)
    }

    /// Returns the shape of the write that deletes all markers of a batch.
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

    /// Returns the row for [`Moved::made`].
    pub fn row(&self) -> [Value; 3] {
        [&self.relocation, &self.key, &self.batch].map(|text| Value::text(&**text))
    }

    /// Returns the row for [`Moved::adopted`].
    pub fn adopted_row(&self) -> [Value; 3] {
        [&self.batch, &self.relocation, &self.key].map(|text| Value::text(&**text))
    }

    /// Returns the row for [`Moved::gone`].
    pub fn gone_row(&self) -> [Value; 2] {
        [&self.relocation, &self.batch].map(|text| Value::text(&**text))
    }

    /// Returns the row for [`Moved::read`].
    pub fn key_row(&self) -> [Value; 2] {
        [&self.relocation, &self.key].map(|text| Value::text(&**text))
    }
}
