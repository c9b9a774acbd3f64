//! The tables that were read, shared by all connections of a sink.

use std::time::Duration;

use windrow_core::TableName;
use windrow_database::described::{self, Descriptions};

use super::table::Facts;
use crate::values::column::{Column, Kind};

/// The time for which a description is used before it is read again. A stale one costs speed or
/// causes an error of the server, but no wrong answer: the server converts and checks every value
/// itself.
const FRESH: Duration = Duration::from_secs(30);

/// The query for the columns of a table. Fields of object columns are listed too, as
/// `column['field']`, without a position.
pub(crate) const COLUMNS: &str = "SELECT column_name, data_type, is_nullable FROM information_schema.columns \
     WHERE table_schema = ? AND table_name = ? AND ordinal_position IS NOT NULL ORDER BY ordinal_position";

/// The query for the columns of the primary key.
pub(crate) const KEY: &str = "SELECT column_name FROM information_schema.key_column_usage \
     WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position";

/// Descriptions of tables by name.
pub(crate) type Catalog = Descriptions<Facts>;

impl described::Facts for Facts {
    fn fresh_for(&self) -> Duration {
        FRESH
    }
}

/// Returns the description of a table from the answers to [`COLUMNS`] and [`KEY`]; `None` if the
/// table does not exist.
pub(crate) fn facts(
    name: TableName,
    columns: Vec<(String, String, bool)>,
    key: &[String],
) -> Option<Facts> {
    let columns: Vec<Column> = columns
        .into_iter()
        // Older servers list fields of objects with a position.
        .filter(|(name, ..)| !name.contains("['"))
        .map(|(name, data_type, nullable)| Column {
            name: name.into(),
            kind: Kind::of(&data_type),
            not_null: !nullable,
        })
        .collect();
    let place = |name: &String| columns.iter().position(|c| *c.name == **name);
    let primary: Option<Vec<usize>> = key.iter().map(place).collect();
    (!columns.is_empty()).then(|| Facts {
        name,
        // A write could not name a key that contains a field of an object.
        primary: primary.unwrap_or_default(),
        columns,
    })
}
