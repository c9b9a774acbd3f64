//! Where a replica's rows go: its database, and what its tables and columns are called.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use windrow_core::{Database, Fault, KeyedTable, Name, TableName};

/// The time for which a description of a table of the replica is used.
const FRESH: Duration = Duration::from_secs(30);

/// The names of tables at a replica, and the columns that it does not get.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By the table's name at the primary, as [`TableName`] shows it.
    pub tables: BTreeMap<String, TableName>,
    /// `table.column`, with the table's name at the primary.
    pub leave_out: BTreeSet<String>,
}

impl Names {
    /// A table's name at a replica, which has schemas or has none.
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

/// A table as it was read, and when.
type Known = (Instant, Option<KeyedTable>);

/// Where rows go.
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

    /// A table of the replica, by its name there; `None` where it is not there, or where nobody
    /// knows.
    pub(crate) async fn described(&self, table: &TableName) -> Result<Option<KeyedTable>, Fault> {
        let Some(inventory) = self.database.inventory() else {
            return Ok(None);
        };
        let known = {
            let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
            tables.get(table).cloned()
        };
        if let Some((at, known)) = known
            && at.elapsed() < FRESH
        {
            return Ok(known);
        }
        let found = inventory.table(table).await?;
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.insert(table.clone(), (Instant::now(), found.clone()));
        Ok(found)
    }
}
