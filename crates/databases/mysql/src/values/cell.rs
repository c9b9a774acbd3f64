//! Reads the cells of a row.

use mysql_async::Row;
use mysql_async::prelude::FromValue;

/// Returns a cell; `None` if it is NULL, missing, or of another type.
pub(crate) fn get<T: FromValue>(row: &Row, place: usize) -> Option<T> {
    row.get_opt::<Option<T>, _>(place)?.ok().flatten()
}

/// Returns a cell as text, which is empty if the cell is NULL.
pub(crate) fn text(row: &Row, place: usize) -> String {
    get(row, place).unwrap_or_default()
}
