//! Tables and rows, in memory.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::cell::Cell;

/// All tables, by their names with schemas.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) tables: BTreeMap<String, Table>,
    pub(super) shards: u64,
    pub(super) authorization: Option<String>,
    pub(super) repeats: bool,
}

/// A table.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) columns: Vec<(String, String)>,
    pub(super) key: Vec<String>,
    pub(super) dynamic: bool,
    pub(super) rows: Vec<Row>,
}

/// Values by column.
pub(super) type Row = BTreeMap<String, Cell>;

impl Tables {
    pub(super) fn new(shards: u64) -> Self {
        Self {
            tables: BTreeMap::new(),
            shards: shards.max(1),
            authorization: None,
            repeats: false,
        }
    }
}

impl Table {
    pub(super) fn data_type(&self, column: &str) -> Option<&str> {
        let found = self.columns.iter().find(|(name, _)| name == column);
        found.map(|(_, data_type)| data_type.as_str())
    }

    /// Returns the place of the row that has these values.
    pub(super) fn find(&self, wanted: &[(String, Cell)]) -> Option<usize> {
        self.rows.iter().position(|row| {
            let same =
                |(name, cell): &(String, Cell)| *cell != Cell::Null && row.get(name) == Some(cell);
            wanted.iter().all(same)
        })
    }

    /// Returns the values of the primary key in a row.
    pub(super) fn key_of(&self, row: &Row) -> Vec<(String, Cell)> {
        let cell = |name: &String| (name.clone(), row.get(name).cloned().unwrap_or(Cell::Null));
        self.key.iter().map(cell).collect()
    }
}

/// Returns the shard of a key.
pub(super) fn shard(key: &[(String, Cell)], shards: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (_, cell) in key {
        cell.json().hash(&mut hasher);
    }
    hasher.finish() % shards
}
