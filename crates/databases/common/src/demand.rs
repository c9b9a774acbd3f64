//! What rows ask of one table: to be made, to get columns, to have them widened.

use windrow_core::{Holds, LoadPlan, Op, RowWrite, Rows, Shape, TableName, Value};

use super::infer::SeenColumns;
use super::new_table::NewTable;

/// What writes ask of their tables, in the order in which these were first named. `see`: how a
/// demand takes in one write.
pub fn by_table<'w, W: Default>(
    writes: impl IntoIterator<Item = &'w RowWrite>,
    see: impl Fn(&mut W, &Shape, &[Value]),
) -> Vec<(&'w TableName, W)> {
    let mut demands: Vec<(&TableName, W)> = Vec::new();
    for write in writes {
        let shape = &write.shape;
        if !matches!(shape.op, Op::Insert | Op::Update) {
            continue;
        }
        let place = demands.iter().position(|(name, _)| **name == shape.table);
        let place = place.unwrap_or_else(|| {
            demands.push((&shape.table, W::default()));
            demands.len() - 1
        });
        if let Some((_, demand)) = demands.get_mut(place) {
            see(demand, shape, write.values());
        }
    }
    demands
}

/// What rows ask of one table.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// Its columns, by what the rows held.
    pub seen_columns: SeenColumns,
    /// Whether it is to be made, and with which key.
    pub new: NewTable,
}

impl Demand {
    /// Takes in one write.
    pub fn see(&mut self, shape: &Shape, row: &[Value]) {
        self.seen_columns.see(&shape.columns, row);
        self.new.see(shape, row);
    }

    /// What many rows of one table ask for, and what is said of them. `times`: texts that all are
    /// times make a column of times.
    pub fn of_rows(plan: &LoadPlan, rows: &Rows, declared: &[Option<Holds>], times: bool) -> Self {
        let (mut demand, shape) = (Self::default(), plan.shape());
        let mut fields = rows.fields();
        for _ in 0..rows.len() {
            let row = fields.by_ref().take(rows.columns());
            let row: Vec<Value> = row.map(|field| field.value()).collect();
            demand.see(&shape, &row);
        }
        demand.seen_columns.settle(&plan.columns, declared, times);
        demand
    }
}
