//! One write of a row: a shape and its values.

use std::mem::size_of;
use std::sync::Arc;

use crate::name::TableName;
use crate::outcome::RowDone;
use crate::shape::{Op, Shape};
use crate::value::Value;
use crate::work::Work;

/// The values of one write, in the order that [`Shape`] defines.
pub type Row = Box<[Value]>;

/// An insert, upsert, update, delete or read of one row.
#[derive(Clone, Debug)]
pub struct RowWrite {
    /// The statement without its values.
    pub shape: Arc<Shape>,
    /// With which values.
    pub row: Row,
}

impl RowWrite {
    /// Joins a shape with its values.
    pub fn new(shape: Arc<Shape>, row: impl Into<Row>) -> Self {
        Self {
            shape,
            row: row.into(),
        }
    }

    /// The values of the shape's columns.
    pub fn values(&self) -> &[Value] {
        self.row
            .get(..self.shape.columns.len())
            .unwrap_or(&self.row)
    }

    /// The values of the key behind them: empty for inserts.
    pub fn key_values(&self) -> &[Value] {
        self.row.get(self.shape.columns.len()..).unwrap_or_default()
    }
}

impl Work for RowWrite {
    type Done = RowDone;

    fn op(&self) -> Op {
        self.shape.op
    }

    fn table(&self) -> &TableName {
        &self.shape.table
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.row.iter().map(Value::bytes).sum::<usize>()
    }
}
