//! What the connections of a database know together, for writes of rows.

use windrow_core::Standing;
use windrow_proof::Trusted;

use super::standing;
use crate::catalog::cache::Catalog;

/// Tables, and what the operator has said of them.
#[derive(Debug)]
pub(crate) struct RowCatalog {
    pub(crate) tables: Catalog,
    /// Functions that the operator answers for.
    pub(crate) trusted: Trusted,
    /// True if tables that are not there are made, and columns of those that Windrow made.
    pub(crate) creates: bool,
    /// True if columns of all other tables are made too.
    pub(crate) extends: bool,
    /// Values are taken for columns GENERATED ALWAYS AS IDENTITY.
    pub(crate) overrides: bool,
}

impl RowCatalog {
    /// What the writes of each table share, for operators.
    pub(crate) fn standings(&self) -> Vec<Standing> {
        let mut standings = Vec::new();
        for (name, table) in self.tables.all() {
            standing::add(&name, &table, &self.trusted, &mut standings);
        }
        standings
    }
}
