//! The catalog that the connections of a lane share: tables by name, for writes with Windrow's own
//! values, and statements of SQL clients by number.

use windrow_core::{Name, Standing, Unit};
use windrow_database::Options;
use windrow_proof::Trusted;

use crate::calls::call_catalog::CallCatalog;
use crate::catalog::cache::Catalog;
use crate::row_statement::RowStatement;
use crate::standing;

/// Tables and statements that a lane knows, and the operator's settings for them.
#[derive(Debug)]
pub(crate) struct LaneCatalog {
    pub(crate) tables: Catalog,
    pub(crate) calls: CallCatalog,
    /// Functions that the operator declared as trusted.
    pub(crate) trusted: Trusted,
    /// True if Windrow creates missing tables, and missing columns of tables that it created.
    pub(crate) creates: bool,
    /// True if Windrow creates missing columns of all other tables too.
    pub(crate) extends: bool,
    /// The column of new tables for the time of arrival.
    pub(crate) received_at: Option<Name>,
    /// True if writes may give values for columns GENERATED ALWAYS AS IDENTITY.
    pub(crate) overrides: bool,
}

impl LaneCatalog {
    pub(crate) fn new(options: &Options) -> Self {
        let trusted = options.trusted_functions.iter().map(String::as_str);
        Self {
            tables: Catalog::default(),
            calls: CallCatalog::default(),
            trusted: trusted.collect(),
            creates: options.create_tables,
            extends: options.extend_tables,
            received_at: options.received_at.clone(),
            overrides: options.given_numbers,
        }
    }

    /// Returns what the writes of each table share, for operators.
    pub(crate) fn standings(&self) -> Vec<Standing> {
        let mut standings = self.calls.standings();
        for (name, table) in self.tables.all() {
            standing::add(&name, &table, &self.trusted, &mut standings);
        }
        standings
    }

    /// Adds a hash for each row that a unit touches and whose key is known.
    pub(crate) fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        let mut scratch = Vec::new();
        for write in unit.writes() {
            if let Some(call) = write.call() {
                let (arguments, formats) = (&call.arguments, &call.formats);
                let statement = &call.statement;
                statement.touches(arguments, formats, &mut scratch, hashes);
            } else if let Some(table) = self.tables.get(&write.shape.table) {
                RowStatement::touches(&write.shape, &table, write.row(), &mut scratch, hashes);
            }
        }
    }
}
