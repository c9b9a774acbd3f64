//! What rows ask of one table: to be made, to get columns, to have them widened.

use windrow_core::{Holds, LoadPlan, Rows, Shape, Value};

use super::infer::Sights;
use super::new_table::NewTable;

/// What rows ask of one table.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Its columns, by what the rows held.
    pub sights: Sights,
    /// Whether it is to be made, and with which key.
    pub new: NewTable,
}

impl Wish {
    /// Takes in one write.
    pub fn see(&mut self, shape: &Shape, row: &[Value]) {
        self.sights.see(&shape.columns, row);
        self.new.see(shape, row);
    }

    /// What many rows of one table ask for, and what is said of them. `times`: texts that all are
    /// times make a column of times.
    pub fn of_rows(plan: &LoadPlan, rows: &Rows, declared: &[Option<Holds>], times: bool) -> Self {
        let (mut wish, shape) = (Self::default(), plan.shape());
        let mut fields = rows.fields();
        for _ in 0..rows.len() {
            let row = fields.by_ref().take(rows.columns());
            let row: Vec<Value> = row.map(|field| field.value()).collect();
            wish.see(&shape, &row);
        }
        wish.sights.settle(&plan.columns, declared, times);
        wish
    }
}
