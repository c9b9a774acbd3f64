//! The database of a replica, and the names of its tables and columns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_core::{Database, Fault, KeyedTable, Name, TableName};

/// The time for which the description of a table counts.
const FRESH: Duration = Duration::from_secs(30);

/// The names of tables at a replica, and the columns that it does not get.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The names at the replica, by the table's name at the primary as [`TableName`] shows it.
    pub tables: BTreeMap<String, TableName>,
    /// The columns that the replica does not get, as `table.column` with the table's name at the
    /// primary.
    pub leave_out: BTreeSet<String>,
}

impl Names {
    /// Returns a table's name at a replica. `schemas`: true if the replica has schemas.
    fn table(&self, table: &TableName, schemas: bool) -> TableName {
        match self.tables.get(&table.to_string()) {
            Some(mapped) => mapped.clone(),
            None if schemas => table.clone(),
            None => TableName::bare(table.table.clone()),
        }
    }

    fn leaves_out(&self, table: &TableName, column: &Name) -> bool {
        !self.leave_out.is_empty() && self.leave_out.contains(&format!("{table}.{column}"))
    }
}

/// A table's description, and when it was read.
type Known = (Instant, Option<KeyedTable>);

/// The destination of the rows.
pub(crate) struct Target {
    pub(crate) database: Arc<dyn Database>,
    names: Names,
    tables: Mutex<HashMap<TableName, Known>>,
}

impl Target {
    pub(crate) fn new(database: Arc<dyn Database>, names: Names) -> Self {
        Self {
            database,
            names,
            tables: Mutex::default(),
        }
    }

    /// A table's name at the replica.
    pub(crate) fn table_name(&self, table: &TableName) -> TableName {
        let schemas = self.database.inventory().is_none_or(|i| i.has_schemas());
        self.names.table(table, schemas)
    }

    /// True if the replica does not get a column.
    pub(crate) fn leaves_out(&self, table: &TableName, column: &Name) -> bool {
        self.names.leaves_out(table, column)
    }

    /// Returns a table of the replica by its name there; `None` if it does not exist, or if that is
    /// unknown.
    pub(crate) async fn described(&self, table: &TableName) -> Result<Option<KeyedTable>, Fault> {
        let Some(inventory) = self.database.inventory() else {
            return Ok(None);
        };
        let known = {
            let tables = self.tables.lock();
            tables.get(table).cloned()
        };
        if let Some((at, known)) = known
            && at.elapsed() < FRESH
        {
            return Ok(known);
        }
        let found = inventory.table(table).await?;
        let mut tables = self.tables.lock();
        tables.insert(table.clone(), (Instant::now(), found.clone()));
        Ok(found)
    }
}
