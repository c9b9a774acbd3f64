//! The shapes of writes to Windrow's own tables.

use std::sync::Arc;

use windrow_core::shape::ShapeParts;
use windrow_core::{Key, Name, OnConflict, Op, Returning, Shape, TableName, Value};

/// Returns the parts of a write to a table, whose row is found by these columns.
pub(crate) fn parts<const N: usize>(op: Op, table: &str, key: [&str; N]) -> ShapeParts {
    ShapeParts {
        op,
        table: TableName::bare(table),
        columns: Box::default(),
        key: Key::Columns(key.map(Name::from).into()),
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    }
}

/// Returns the shape of a write.
pub(crate) fn shape_of(parts: ShapeParts) -> Arc<Shape> {
    Arc::new(Shape::new(parts))
}

/// Returns the value of a position or another number that is not negative.
pub(crate) fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
