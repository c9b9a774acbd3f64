//! The tables that were read, shared by all connections of a sink.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use windrow_core::TableName;

/// The most tables that are kept.
const MOST: usize = 10_000;

/// A table, as it was when it was read.
pub trait Described {
    /// What was read.
    type Facts: PartialEq;

    /// Read now. The version changes whenever the facts do.
    fn new(version: u64, facts: Self::Facts) -> Self;

    /// Its version.
    fn version(&self) -> u64;

    /// What was read.
    fn facts(&self) -> &Self::Facts;

    /// False once it is due to be read again.
    fn is_fresh(&self) -> bool;
}

/// Descriptions by name.
#[derive(Debug)]
pub struct Descriptions<T> {
    tables: RwLock<HashMap<TableName, Arc<T>>>,
    versions: AtomicU64,
}

impl<T> Default for Descriptions<T> {
    fn default() -> Self {
        Self {
            tables: RwLock::default(),
            versions: AtomicU64::default(),
        }
    }
}

impl<T: Described> Descriptions<T> {
    /// The description, however old.
    pub fn get(&self, name: &TableName) -> Option<Arc<T>> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.get(name).cloned()
    }

    /// The description, if it is not due to be read again.
    pub fn fresh(&self, name: &TableName) -> Option<Arc<T>> {
        self.get(name).filter(|table| table.is_fresh())
    }

    /// Forgets a version: it is read again before it is used.
    pub fn forget(&self, version: u64) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|_, table| table.version() != version);
    }

    /// All of them, however old, by name.
    pub fn all(&self) -> Vec<(TableName, Arc<T>)> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = tables.iter().map(|(n, t)| (n.clone(), t.clone())).collect();
        all.sort_by_cached_key(|(name, _)| name.to_string());
        all
    }

    /// Takes in what was read; `None`: there is no such table. A description that has not changed
    /// keeps its version.
    pub fn put(&self, name: &TableName, facts: Option<T::Facts>) -> Option<Arc<T>> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let Some(facts) = facts else {
            tables.remove(name);
            return None;
        };
        let version = match tables.get(name) {
            Some(known) if *known.facts() == facts => known.version(),
            _ => self.versions.fetch_add(1, Ordering::Relaxed),
        };
        let table = Arc::new(T::new(version, facts));
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

    struct Known(u64, &'static str);

    impl Described for Known {
        type Facts = &'static str;

        fn new(version: u64, facts: Self::Facts) -> Self {
            Self(version, facts)
        }

        fn version(&self) -> u64 {
            self.0
        }

        fn facts(&self) -> &Self::Facts {
            &self.1
        }

        fn is_fresh(&self) -> bool {
            self.1 != "old"
        }
    }

    #[test]
    fn a_version_changes_with_the_facts_alone() {
        let all = Descriptions::<Known>::default();
        let name = TableName::bare("t");
        let version = |facts| all.put(&name, facts).map(|table| table.version());
        let first = version(Some("a"));
        assert_eq!(version(Some("a")), first);
        assert_ne!(version(Some("b")), first);
        assert!(all.fresh(&name).is_some());
        version(Some("old"));
        assert!(all.fresh(&name).is_none() && all.get(&name).is_some());
        assert_eq!(version(None), None);
        assert!(all.get(&name).is_none());
        // What is told apart by its version never gets one that was used before.
        assert!(version(Some("a")) > first);
    }
}
