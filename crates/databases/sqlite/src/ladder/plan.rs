//! The plan of a shape: its statement, and what its values become.

use std::sync::Arc;

use windrow_core::moves::TableFacts;
use windrow_core::{Fault, Key, Name, Shape};

use crate::catalog::table::Table;
use crate::values::bind::Slot;
use crate::values::column::ColumnType;

/// How the writes of one shape are executed, as long as the schema stays as it is.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The statement for one row.
    pub(crate) sql: String,
    /// One for each value of the row.
    pub(crate) slots: Box<[Slot]>,
    /// What comes back, if anything.
    pub(crate) returned: Option<ReturnedColumns>,
    /// The unique keys in which the row gets the moment, by their place in
    /// [`Table::moment_keys`], with the places of their other values in the row.
    pub(crate) moments: Box<[(usize, Box<[usize]>)]>,
    /// It puts a row into a view, whose triggers SQLite does not count: for a load that is one
    /// row.
    pub(crate) uncounted: bool,
}

/// The columns that come back.
#[derive(Debug)]
pub(crate) struct ReturnedColumns {
    pub(crate) names: Arc<[Name]>,
    pub(crate) types: Box<[ColumnType]>,
}

/// Why there is no plan for a shape.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It can never be executed.
    Fault(Fault),
    /// It can once the table has been created or extended.
    Grow,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What is taken for a shape's table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableRules {
    /// [`crate::Options::create_tables`].
    pub(crate) create: bool,
    /// [`crate::Options::extend_tables`].
    pub(crate) extend: bool,
    /// [`crate::Options::exact_names`].
    pub(crate) exact: bool,
}

impl TableRules {
    /// Refuses a table that is not spelled as the shape names it, if that matters.
    pub(crate) fn check(self, shape: &Shape, table: &Table) -> Result<(), Fault> {
        match self.exact && table.name != shape.table.table {
            true => Err(TableFacts::otherwise_spelled(&shape.table, &table.name)),
            false => Ok(()),
        }
    }
}

/// The fault for a row with too many or too few values.
pub(crate) fn wrong_length(shape: &Shape, table: Option<&Table>, given: usize) -> Fault {
    let columns = shape.columns.len();
    let key = match (&shape.key, table) {
        (Key::Columns(names), _) => names.iter().map(|n| &**n).collect::<Vec<_>>(),
        (Key::Primary, Some(table)) => table.primary_names().map(|n| &**n).collect(),
        (Key::Primary, None) => Vec::new(),
    };
    if shape.has_key_values() && given >= columns {
        return Fault::invalid(format!(
            "the key of table {} is ({}): {} values are needed, {} given",
            shape.table,
            key.join(", "),
            key.len(),
            given - columns
        ));
    }
    Fault::invalid(format!(
        "a row for table {} has {given} values for {columns} columns",
        shape.table
    ))
}
