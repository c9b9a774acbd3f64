//! Plans a shape: its statement, and the parameters of its values. Plans are kept until the schema
//! changes.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use windrow_core::{Fault, Key, Name, Op, Shape};
use windrow_database::shape_faults;

use super::sql::{NoPlan, ReturnedColumns, SqlBuilder, TableRules};
use crate::catalog::table::{MomentKey, Table};
use crate::values::bind::Slot;

/// The largest number of plans that are kept. After that all are dropped.
const MAX_PLANS: usize = 1024;

/// The statement for the writes of one shape, valid until the schema changes.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The statement for one row.
    pub(crate) sql: String,
    /// The parameters of the row's values.
    pub(crate) slots: Box<[Slot]>,
    /// The returned columns, if there are any.
    pub(crate) returned: Option<ReturnedColumns>,
    /// The unique keys that contain the time of the write, by their place in
    /// [`Table::moment_keys`], with the places of their other values in the row.
    pub(crate) moments: Box<[(usize, Box<[usize]>)]>,
    /// True for an insert into a view: SQLite does not count the rows of its triggers.
    pub(crate) uncounted: bool,
}

/// The plans of all shapes since the last change of the schema.
#[derive(Debug, Default)]
pub(crate) struct Plans(HashMap<Arc<Shape>, Arc<Plan>, FixedState>);

impl Plans {
    /// Returns the plan of a shape.
    ///
    /// # Errors
    /// The shape can never be executed, or its table has to be changed first.
    pub(crate) fn plan(
        &mut self,
        shape: &Arc<Shape>,
        table: Option<&Table>,
        rules: TableRules,
    ) -> Result<Arc<Plan>, NoPlan> {
        if let Some(plan) = self.0.get(shape) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(make(shape, table, rules)?);
        if self.0.len() >= MAX_PLANS {
            self.0.clear();
        }
        self.0.insert(shape.clone(), plan.clone());
        Ok(plan)
    }

    /// Drops all plans, because the schema has changed.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Plans a shape for its table.
fn make(shape: &Shape, table: Option<&Table>, rules: TableRules) -> Result<Plan, NoPlan> {
    let Some(table) = table else {
        return Err(if rules.create && shape.op == Op::Insert {
            NoPlan::Grow
        } else {
            shape_faults::no_table(&shape.table).into()
        });
    };
    rules.check(shape, table)?;
    let builder = SqlBuilder {
        shape,
        table,
        rules,
    };
    let (sql, slots) = match shape.op {
        Op::Insert => builder.insert()?,
        Op::Update => builder.update()?,
        Op::Delete => builder.delete()?,
        Op::Get => builder.get()?,
    };
    Ok(Plan {
        sql,
        slots: slots.into(),
        returned: builder.returned()?,
        moments: moments(shape, table),
        uncounted: table.view && shape.op == Op::Insert,
    })
}

/// Returns the keys of the table that contain the time of the write, if rows of this shape do not
/// give it.
fn moments(shape: &Shape, table: &Table) -> Box<[(usize, Box<[usize]>)]> {
    let place = |name: &Name| {
        let mut columns = shape.columns.iter();
        columns.position(|column| column.eq_ignore_ascii_case(name))
    };
    let gets = |key: &MomentKey| {
        shape.op == Op::Insert && key.moments.iter().all(|name| place(name).is_none())
    };
    let keys = table.moment_keys.iter().enumerate();
    keys.filter(|(_, key)| gets(key))
        .map(|(at, key)| (at, key.others.iter().filter_map(place).collect()))
        .collect()
}

/// Returns the fault of a row with too many or too few values.
pub(crate) fn wrong_length(shape: &Shape, table: Option<&Table>, given: usize) -> Fault {
    let primary = table.into_iter().flat_map(Table::primary_names);
    let named: &[Name] = match &shape.key {
        Key::Columns(names) => names,
        Key::Primary => &[],
    };
    let key = named
        .iter()
        .chain(primary.filter(|_| shape.key == Key::Primary));
    shape_faults::wrong_length(shape, &shape.table, key, given)
}
