//! From a shape to its statement, made once for each version of the schema.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use windrow_core::{Fault, FaultClass, Name, Op, Shape};

use super::plan::{Plan, Refusal, TableRules};
use super::sql::SqlBuilder;
use crate::catalog::table::{MomentKey, Table};

/// The most plans that are kept. Beyond it all are made again.
const MAX_PLANS: usize = 1024;

/// The plans of the shapes met since the schema last changed.
#[derive(Debug, Default)]
pub(crate) struct Plans(HashMap<Arc<Shape>, Arc<Plan>, FixedState>);

impl Plans {
    pub(crate) fn plan(
        &mut self,
        shape: &Arc<Shape>,
        table: Option<&Table>,
        rules: TableRules,
    ) -> Result<Arc<Plan>, Refusal> {
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

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Plans a shape against its table as it is now.
fn make(shape: &Shape, table: Option<&Table>, rules: TableRules) -> Result<Plan, Refusal> {
    let Some(table) = table else {
        return Err(if rules.create && shape.op == Op::Insert {
            Refusal::Grow
        } else {
            no_table(shape).into()
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

/// Returns the keys of the table in which a row of this shape gets the moment by default.
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

fn no_table(shape: &Shape) -> Fault {
    let message = format!("no such table: {}", shape.table);
    Fault::new(FaultClass::NoTable, "42P01", message).with_table(Some(&*shape.table.table))
}
