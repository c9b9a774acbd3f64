//! One write of a row: a statement without its values, and the values.

use std::mem::size_of;
use std::sync::Arc;

use crate::name::TableName;
use crate::shape::{Op, Shape};
use crate::sql::SqlCall;
use crate::value::{Row, Value};

/// An insert, upsert, update, delete or read of one row, with one outcome.
///
/// The values are Windrow's own, or those of an SQL client's call. Only the frontend of a database
/// that describes statements makes calls ([`crate::Describer`]), so no other database gets one.
#[derive(Clone, Debug)]
pub struct Write {
    /// The statement without its values. For a call: its table, columns and key, if the client's
    /// text names them.
    pub shape: Arc<Shape>,
    values: WriteValues,
}

/// The values of a write. No larger than a row, so that a queued write stays small.
#[derive(Clone, Debug)]
enum WriteValues {
    /// Values in the order that [`Shape`] defines.
    Row(Row),
    /// The bytes of an SQL client, with the statement that says what they mean.
    Call(Box<SqlCall>),
}

impl Write {
    /// Joins a shape with its values.
    pub fn new(shape: Arc<Shape>, row: impl Into<Row>) -> Self {
        Self {
            shape,
            values: WriteValues::Row(row.into()),
        }
    }

    /// Returns the row's values: those of the shape's columns, then those of the key; none for a
    /// call.
    pub fn row(&self) -> &[Value] {
        match &self.values {
            WriteValues::Row(row) => row,
            WriteValues::Call(_) => &[],
        }
    }

    /// Returns the call of an SQL client; `None` if the values are Windrow's own.
    pub fn call(&self) -> Option<&SqlCall> {
        match &self.values {
            WriteValues::Row(_) => None,
            WriteValues::Call(call) => Some(call),
        }
    }

    /// Returns the values of the shape's columns.
    pub fn values(&self) -> &[Value] {
        let row = self.row();
        row.get(..self.shape.columns.len()).unwrap_or(row)
    }

    /// Returns the values of the key; none for inserts.
    pub fn key_values(&self) -> &[Value] {
        let columns = self.shape.columns.len();
        self.row().get(columns..).unwrap_or_default()
    }

    /// Returns the operation.
    pub fn op(&self) -> Op {
        self.shape.op
    }

    /// Returns the table that is written or read.
    pub fn table(&self) -> &TableName {
        &self.shape.table
    }

    /// Returns the bytes that the write takes in memory.
    pub fn bytes(&self) -> usize {
        let values = match &self.values {
            WriteValues::Row(row) => row.iter().map(Value::bytes).sum::<usize>(),
            WriteValues::Call(call) => call.bytes(),
        };
        size_of::<Self>() + values
    }
}

impl From<SqlCall> for Write {
    fn from(call: SqlCall) -> Self {
        Self {
            shape: Arc::clone(call.statement.shape()),
            values: WriteValues::Call(Box::new(call)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queued_write_is_small() {
        assert!(size_of::<Write>() <= 24, "{}", size_of::<Write>());
    }
}
