//! The tables that were read, shared by all connections of a sink.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::Shape;
use windrow_database::described::{Described, Descriptions};

use super::table::{Facts, Table};
use crate::ladder::compiled::Compiled;

/// How long a description is used before it is read again. Changes of columns are noticed at once,
/// by the guard of a transaction; this is for what changes no column: a trigger, say.
const FRESH: Duration = Duration::from_secs(30);

/// The same where there is no guard, because the user may not select from the table.
const UNGUARDED: Duration = Duration::from_secs(1);

/// The most shapes that are kept.
const MOST_SHAPES: usize = 4096;

/// Descriptions by name, and shapes joined with them.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    shapes: RwLock<HashMap<Arc<Shape>, Arc<Compiled>>>,
    tables: Descriptions<Table>,
}

impl Described for Table {
    type Facts = Facts;

    fn new(version: u64, facts: Facts) -> Self {
        Self {
            version,
            read_at: Instant::now(),
            facts,
        }
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn is_fresh(&self) -> bool {
        let longest = if self.print.is_some() {
            FRESH
        } else {
            UNGUARDED
        };
        self.read_at.elapsed() < longest
    }
}

impl Deref for Catalog {
    type Target = Descriptions<Table>;

    fn deref(&self) -> &Self::Target {
        &self.tables
    }
}

impl Catalog {
    /// A shape joined with its table.
    pub(crate) fn compile(&self, shape: &Arc<Shape>, table: &Arc<Table>) -> Arc<Compiled> {
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
