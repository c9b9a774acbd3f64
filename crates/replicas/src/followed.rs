//! A table whose rows are followed, and the keys by which logs name its rows.

use std::sync::Arc;

use windrow_core::shape::ShapeParts;
use windrow_core::{Key, KeyedTable, Name, OnConflict, Op, Returning, Shape, Value, Write};

/// A table whose rows are followed.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) table: KeyedTable,
    pub(crate) get: Arc<Shape>,
    pub(crate) get_spelled: Arc<Shape>,
}

/// Returns the read of a row by its key, which represents the key in logs.
fn get_shape(table: &KeyedTable) -> ShapeParts {
    ShapeParts {
        op: Op::Get,
        table: table.name.clone(),
        columns: Box::default(),
        key: Key::Columns(table.key.clone()),
        on_conflict: OnConflict::Error,
        returning: Returning::All,
    }
}

impl Followed {
    pub(crate) fn new(table: KeyedTable) -> Self {
        Self {
            get: Arc::new(Shape::new(get_shape(&table))),
            get_spelled: Arc::new(Shape::spelled(get_shape(&table))),
            table,
        }
    }

    /// Returns the read of a row.
    pub(crate) fn key(&self, values: impl Into<Box<[Value]>>) -> Write {
        Write::new(Arc::clone(&self.get), values.into())
    }

    /// Returns the note about all rows of the table that may have changed: a read without a key.
    pub(crate) fn note(&self) -> Write {
        self.key([])
    }

    pub(crate) fn place(&self, column: &Name) -> Option<usize> {
        let mut key = self.table.key.iter();
        key.position(|name| name.eq_ignore_ascii_case(column))
    }
}
