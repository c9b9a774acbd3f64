//! The descriptions of a batch's tables.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::{Fault, FaultClass, Name, Shape, TableName};

use super::statement::Statement;
use crate::catalog::table::Table;

/// The most statements that a connection keeps.
const STATEMENTS: usize = 1_000;

/// The tables of a batch.
pub(super) struct Knowledge {
    pub(super) tables: HashMap<TableName, Result<Option<Arc<Table>>, Fault>>,
    /// Why a table could not be created or extended.
    pub(super) not_grown: HashMap<TableName, Fault>,
    pub(super) statements: HashMap<Arc<Shape>, Arc<Statement>>,
}

impl Knowledge {
    /// # Errors
    /// There is none, or it cannot be looked at.
    pub(super) fn table(&self, name: &TableName) -> Result<Arc<Table>, Fault> {
        match self.tables.get(name) {
            Some(Ok(Some(table))) => Ok(table.clone()),
            Some(Err(fault)) => Err(fault.clone()),
            Some(Ok(None)) | None => Err(self.not_grown.get(name).cloned().unwrap_or_else(|| {
                let message = format!("no such table: {name}");
                Fault::new(FaultClass::NoTable, "42P01", message).with_table(Some(&*name.table))
            })),
        }
    }

    /// Why a column is not there although columns may be created.
    pub(super) fn not_grown(&self, table: &TableName, column: &Name) -> Fault {
        let known = self
            .not_grown
            .iter()
            .find(|(name, _)| name.table == table.table);
        known.map(|(_, fault)| fault.clone()).unwrap_or_else(|| {
            let message = format!("table {table} has no column named {column}");
            Fault::new(FaultClass::NoColumn, "42703", message)
                .with_table(Some(&*table.table))
                .with_column(Some(&**column))
        })
    }

    pub(super) fn remember(&mut self, shape: Arc<Shape>, statement: Arc<Statement>) {
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(shape, statement);
    }
}
