//! The cells of a row that the server gave.

use mysql_async::Row;
use mysql_async::prelude::FromValue;

/// A cell; `None` where it is NULL, is not there, or is of another type.
pub(crate) fn get<T: FromValue>(row: &Row, place: usize) -> Option<T> {
    row.get_opt::<Option<T>, _>(place)?.ok().flatten()
}

/// A cell as text; empty where there is none.
pub(crate) fn text(row: &Row, place: usize) -> String {
    get(row, place).unwrap_or_default()
}
