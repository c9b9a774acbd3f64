//! From a shape to SQL and its parameters.

use std::sync::Arc;

use windrow_core::relocate::TableFacts;
use windrow_core::{Fault, FaultClass, Key, Name, Op, Shape};

use super::catalog::Table;
use super::column::ColumnType;
use super::draft::Draft;

/// How the writes of one shape are executed, as long as the schema stays as it is.
#[derive(Debug)]
pub(super) struct Plan {
    /// The statement for one row.
    pub(super) sql: String,
    /// One for each value of the row.
    pub(super) slots: Box<[Slot]>,
    /// What comes back, if anything.
    pub(super) returned: Option<ReturnedColumns>,
    /// It puts a row into a view, whose triggers SQLite does not count: for a load that is one
    /// row.
    pub(super) uncounted: bool,
}

/// Where one value of a row goes.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) column: Name,
    pub(super) column_type: ColumnType,
    pub(super) use_: Use,
    /// Its number in the statement.
    pub(super) parameter: usize,
}

/// What a value is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It is stored in a column that stays as it is.
    Fixed,
    /// It is stored in a column that may be widened for it.
    Growing,
    /// It is stored in a column of a key, in a table that Windrow made: what is not kept exactly is
    /// refused.
    Firm,
    /// It belongs to a column that is not there and may be added; only NULL passes, and is left
    /// out.
    Missing,
    /// It finds a row.
    Key,
    /// It finds a row, and is a text as a path spells it.
    Spelled,
}

/// The columns that come back.
#[derive(Debug)]
pub(super) struct ReturnedColumns {
    pub(super) names: Arc<[Name]>,
    pub(super) types: Box<[ColumnType]>,
}

/// Why there is no plan for a shape.
#[derive(Debug)]
pub(super) enum Refusal {
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
pub(super) struct Manner {
    /// [`crate::Options::create_tables`].
    pub(super) create: bool,
    /// [`crate::Options::exact_names`].
    pub(super) exact: bool,
}

impl Manner {
    /// Refuses a table that is not spelled as the shape names it, if that matters.
    pub(super) fn check(self, shape: &Shape, table: &Table) -> Result<(), Fault> {
        match self.exact && table.name != shape.table.table {
            true => Err(TableFacts::otherwise_spelled(&shape.table, &table.name)),
            false => Ok(()),
        }
    }
}

/// Plans a shape against its table as it is now.
pub(super) fn plan(shape: &Shape, table: Option<&Table>, manner: Manner) -> Result<Plan, Refusal> {
    let create = manner.create;
    let Some(table) = table else {
        return Err(if create && shape.op == Op::Insert {
            Refusal::Grow
        } else {
            no_table(shape).into()
        });
    };
    manner.check(shape, table)?;
    let draft = Draft {
        shape,
        table,
        create: create && table.plain,
    };
    let (sql, slots) = match shape.op {
        Op::Insert => draft.insert()?,
        Op::Update => draft.update()?,
        Op::Delete => draft.delete()?,
        Op::Get => draft.get()?,
    };
    Ok(Plan {
        sql,
        slots: slots.into(),
        returned: draft.returned()?,
        uncounted: table.view && shape.op == Op::Insert,
    })
}

/// The fault for a row with too many or too few values.
pub(super) fn wrong_length(shape: &Shape, table: Option<&Table>, given: usize) -> Fault {
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

fn no_table(shape: &Shape) -> Fault {
    let message = format!("no such table: {}", shape.table);
    Fault::new(FaultClass::NoTable, "42P01", message).with_table(Some(&*shape.table.table))
}
