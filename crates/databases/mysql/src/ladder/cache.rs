//! The tables that were read and the shapes joined with them, shared by all connections of a sink.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};

use windrow_core::Shape;
use windrow_database::described::Descriptions;

use super::plan::Compiled;
use crate::catalog::table::{Facts, Table};

/// The most shapes that are kept.
const MOST_SHAPES: usize = 4096;

/// Descriptions by name, and shapes joined with them.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// True if columns that Windrow made refuse values that they would not keep as they are.
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

    /// A shape joined with its table.
    pub(crate) fn compile(&self, shape: &Arc<Shape>, table: &Arc<Table>) -> Arc<Compiled> {
        let shapes = self.shapes.read().unwrap_or_else(PoisonError::into_inner);
        match shapes.get(shape) {
            Some(known) if known.table.version == table.version => return known.clone(),
            _ => drop(shapes),
        }
        let compiled = Arc::new(Compiled::new(shape, table, self.judges));
        let mut shapes = self.shapes.write().unwrap_or_else(PoisonError::into_inner);
        if shapes.len() >= MOST_SHAPES {
            shapes.clear();
        }
        shapes.insert(shape.clone(), compiled.clone());
        compiled
    }
}
