//! The catalog that the connections of a database share, for writes of rows.

use windrow_core::Standing;
use windrow_proof::Trusted;

use super::standing;
use crate::catalog::cache::Catalog;

/// Tables, and the operator's settings for them.
#[derive(Debug)]
pub(crate) struct RowCatalog {
    pub(crate) tables: Catalog,
    /// Functions that the operator declared as trusted.
    pub(crate) trusted: Trusted,
    /// True if Windrow creates missing tables, and missing columns of tables that it created.
    pub(crate) creates: bool,
    /// True if Windrow creates missing columns of all other tables too.
    pub(crate) extends: bool,
    /// True if writes may give values for columns GENERATED ALWAYS AS IDENTITY.
    pub(crate) overrides: bool,
}

impl RowCatalog {
    /// Returns what the writes of each table share, for operators.
    pub(crate) fn standings(&self) -> Vec<Standing> {
        let mut standings = Vec::new();
        for (name, table) in self.tables.all() {
            standing::add(&name, &table, &self.trusted, &mut standings);
        }
        standings
    }
}
