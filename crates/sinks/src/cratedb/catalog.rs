//! The tables that were read, shared by all connections of a sink.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::TableName;

use super::column::{Column, Kind};
use super::table::{Facts, Table};

/// How long a description is used before it is read again. A stale one costs speed or a refusal by the server, never truth:
/// the server converts and judges every value itself.
const FRESH: Duration = Duration::from_secs(30);

/// The most tables that are kept.
const MOST: usize = 10_000;

/// The columns of a table. Fields of object columns are listed too, as `column['field']`, without a position.
pub(super) const COLUMNS: &str = "SELECT column_name, data_type, is_nullable FROM information_schema.columns \
     WHERE table_schema = ? AND table_name = ? AND ordinal_position IS NOT NULL ORDER BY ordinal_position";

/// The columns of its primary key.
pub(super) const KEY: &str = "SELECT column_name FROM information_schema.key_column_usage \
     WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position";

/// Descriptions by name.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    tables: RwLock<HashMap<TableName, Arc<Table>>>,
    versions: AtomicU64,
}

impl Catalog {
    /// The description, however old.
    pub(super) fn get(&self, name: &TableName) -> Option<Arc<Table>> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.get(name).cloned()
    }

    /// The description, if it is not due to be read again.
    pub(super) fn fresh(&self, name: &TableName) -> Option<Arc<Table>> {
        self.get(name)
            .filter(|table| table.read_at.elapsed() < FRESH)
    }

    /// The server says something else: the description is read again before it is used.
    pub(super) fn forget(&self, name: &TableName) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.remove(name);
    }

    /// Takes in what was read; `None`: there is no such table. A description that has not changed keeps its version.
    pub(super) fn put(&self, name: &TableName, facts: Option<Facts>) -> Option<Arc<Table>> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let Some(facts) = facts else {
            tables.remove(name);
            return None;
        };
        let version = match tables.get(name) {
            Some(known) if known.facts == facts => known.version,
            _ => self.versions.fetch_add(1, Ordering::Relaxed),
        };
        let table = Arc::new(Table {
            version,
            read_at: Instant::now(),
            facts,
        });
        if tables.len() >= MOST {
            tables.clear();
        }
        tables.insert(name.clone(), table.clone());
        Some(table)
    }
}

/// What the answers to [`COLUMNS`] and [`KEY`] say of a table; `None`: there is none.
pub(super) fn facts(
    name: TableName,
    columns: Vec<(String, String, bool)>,
    key: &[String],
) -> Option<Facts> {
    let columns: Vec<Column> = columns
        .into_iter()
        // Older servers give fields of objects a position.
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
        // A key that holds a field of an object is none that a write could name.
        primary: primary.unwrap_or_default(),
        columns,
    })
}
