//! Caches descriptions of tables and the shapes joined with them, for all connections of a sink.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::RwLock;
use windrow_core::Shape;
use windrow_database::described::Descriptions;

use super::plan::Compiled;
use crate::catalog::table::{Facts, Table};

/// The largest number of shapes that are kept. After that all are dropped.
const MAX_SHAPES: usize = 4096;

/// Descriptions by name, and shapes joined with them.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// True if columns that Windrow created refuse values that they would not keep exactly.
    judges: bool,
    shapes: RwLock<HashMap<Arc<Shape>, Arc<Compiled>>>,
    tables: Descriptions<Facts>,
}

impl Deref for Catalog {
    type Target = Descriptions<Facts>;

    fn deref(&self) -> &Self::Target {
        &self.tables
    }
}

impl Catalog {
    /// Makes an empty catalog.
    pub(crate) fn new(judges: bool) -> Self {
        Self {
            judges,
            ..Self::default()
        }
    }

    /// Returns a shape joined with its table.
    pub(crate) fn compile(&self, shape: &Arc<Shape>, table: &Arc<Table>) -> Arc<Compiled> {
        let shapes = self.shapes.read();
        match shapes.get(shape) {
            Some(known) if known.table.version == table.version => return known.clone(),
            _ => drop(shapes),
        }
        let compiled = Arc::new(Compiled::new(shape, table, self.judges));
        let mut shapes = self.shapes.write();
        if shapes.len() >= MAX_SHAPES {
            shapes.clear();
        }
        shapes.insert(shape.clone(), compiled.clone());
        compiled
    }
}
