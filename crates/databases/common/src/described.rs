//! The descriptions of tables that were read, shared by all connections of a sink.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::time::Instant;
use windrow_core::TableName;

/// The most tables kept.
const MOST: usize = 10_000;

/// The description of a table.
pub trait Facts: PartialEq {
    /// Returns the time for which the description is used before it is read again.
    fn fresh_for(&self) -> Duration;
}

/// A table's description, and when it was read.
#[derive(Clone, Debug)]
pub struct Table<F> {
    /// A number that changes with the facts. Statements are compiled for one version.
    pub version: u64,
    /// The time of reading.
    pub read_at: Instant,
    /// The description.
    pub facts: F,
}

impl<F> Deref for Table<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.facts
    }
}

impl<F: Facts> Table<F> {
    /// Returns a description that was read now.
    pub fn new(version: u64, facts: F) -> Self {
        Self {
            version,
            read_at: Instant::now(),
            facts,
        }
    }

    /// True until the description should be read again.
    pub fn is_fresh(&self) -> bool {
        self.read_at.elapsed() < self.facts.fresh_for()
    }
}

/// Descriptions by name.
#[derive(Debug)]
pub struct Descriptions<F> {
    tables: RwLock<HashMap<TableName, Arc<Table<F>>>>,
    versions: AtomicU64,
}

impl<F> Default for Descriptions<F> {
    fn default() -> Self {
        Self {
            tables: RwLock::default(),
            versions: AtomicU64::default(),
        }
    }
}

impl<F: Facts> Descriptions<F> {
    /// Returns the description, whatever its age.
    pub fn get(&self, name: &TableName) -> Option<Arc<Table<F>>> {
        let tables = self.tables.read();
        tables.get(name).cloned()
    }

    /// Returns the description, unless it should be read again.
    pub fn fresh(&self, name: &TableName) -> Option<Arc<Table<F>>> {
        self.get(name).filter(|table| table.is_fresh())
    }

    /// Removes a version, so that the table is read before it is used again.
    pub fn forget(&self, version: u64) {
        let mut tables = self.tables.write();
        tables.retain(|_, table| table.version != version);
    }

    /// Returns all descriptions by name, whatever their age.
    pub fn all(&self) -> Vec<(TableName, Arc<Table<F>>)> {
        let tables = self.tables.read();
        let mut all: Vec<_> = tables.iter().map(|(n, t)| (n.clone(), t.clone())).collect();
        all.sort_by_cached_key(|(name, _)| name.to_string());
        all
    }

    /// Stores what was read; `None` if the table does not exist. An unchanged description keeps its
    /// version.
    pub fn put(&self, name: &TableName, facts: Option<F>) -> Option<Arc<Table<F>>> {
        let mut tables = self.tables.write();
        let Some(facts) = facts else {
            tables.remove(name);
            return None;
        };
        let version = match tables.get(name) {
            Some(known) if known.facts == facts => known.version,
            _ => self.versions.fetch_add(1, Ordering::Relaxed),
        };
        let table = Arc::new(Table::new(version, facts));
        if tables.len() >= MOST {
            tables.clear();
        }
        tables.insert(name.clone(), table.clone());
        Some(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Facts for &'static str {
        fn fresh_for(&self) -> Duration {
            match *self {
                "old" => Duration::ZERO,
                _ => Duration::from_secs(60),
            }
        }
    }

    #[test]
    fn a_version_changes_with_the_facts_alone() {
        let all = Descriptions::<&str>::default();
        let name = TableName::bare("t");
        let version = |facts| all.put(&name, facts).map(|table| table.version);
        let first = version(Some("a"));
        assert_eq!(version(Some("a")), first);
        assert_ne!(version(Some("b")), first);
        assert!(all.fresh(&name).is_some());
        version(Some("old"));
        assert!(all.fresh(&name).is_none() && all.get(&name).is_some());
        assert_eq!(version(None), None);
        assert!(all.get(&name).is_none());
        // A version is never used twice.
        assert!(version(Some("a")) > first);
    }
}
