//! The tables that were read, shared by all connections of a sink.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::TableName;

use super::table::{Facts, Table};

/// How long a description is used before it is read again. Changes of columns are noticed at once ([`super::prepare`]);
/// this is for what does not change a column: a trigger, a rule, a policy, a new index.
const FRESH: Duration = Duration::from_secs(30);

/// The most tables that are kept.
const MOST: usize = 10_000;

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
            print: None,
        });
        if tables.len() >= MOST {
            tables.clear();
        }
        tables.insert(name.clone(), table.clone());
        Some(table)
    }
}
