//! The tables that were read, shared by all connections of a sink.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::{Shape, TableName};

use super::compiled::Compiled;
use super::table::{Facts, Table};

/// How long a description is used before it is read again. Changes of columns are noticed at once, by the guard of a
/// transaction; this is for what changes no column: a trigger, say.
const FRESH: Duration = Duration::from_secs(30);

/// The same where there is no guard, because the user may not select from the table.
const UNGUARDED: Duration = Duration::from_secs(1);

/// The most tables that are kept.
const MOST: usize = 10_000;

/// The most shapes that are kept.
const MOST_SHAPES: usize = 4096;

/// Descriptions by name.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    shapes: RwLock<HashMap<Arc<Shape>, Arc<Compiled>>>,
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
        self.get(name).filter(|table| {
            let longest = if table.print.is_some() {
                FRESH
            } else {
                UNGUARDED
            };
            table.read_at.elapsed() < longest
        })
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

    /// A shape joined with its table.
    pub(super) fn compile(&self, shape: &Arc<Shape>, table: &Arc<Table>) -> Arc<Compiled> {
        let shapes = self.shapes.read().unwrap_or_else(PoisonError::into_inner);
        match shapes.get(shape) {
            Some(known) if known.table.version == table.version => return known.clone(),
            _ => drop(shapes),
        }
        let compiled = Arc::new(Compiled::new(shape, table));
        let mut shapes = self.shapes.write().unwrap_or_else(PoisonError::into_inner);
        if shapes.len() >= MOST_SHAPES {
            shapes.clear();
        }
        shapes.insert(shape.clone(), compiled.clone());
        compiled
    }
}
