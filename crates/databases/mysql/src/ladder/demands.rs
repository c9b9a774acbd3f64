//! What the rows of a batch ask of their tables, and who is told where they do not get it.

use windrow_core::{Op, RowDone, RowWrite, TableName, Verdict};
use windrow_database::demand::Demand;

use super::batch::Batch;
use super::cache::Catalog;
use crate::catalog::create;

/// What the rows of a batch ask of their tables, as far as the descriptions say.
pub(super) fn of<'a>(batch: &Batch<'a>, catalog: &Catalog) -> Vec<(&'a TableName, Demand)> {
    let open = batch
        .units
        .iter()
        .zip(&batch.verdicts)
        .filter(|(_, verdict)| verdict.is_none());
    let mut demands = Demand::of_writes(open.flat_map(|(unit, _)| unit.work()));
    demands.retain(|(name, demand)| match catalog.get(name) {
        None => demand.new.is_wanted(),
        Some(table) => !create::changes(&table.facts, demand).is_empty(),
    });
    demands
}

/// The units without a verdict whose rows do not fit the table get this one.
pub(super) fn conclude(batch: &mut Batch<'_>, table: &TableName, verdict: &Verdict<RowDone>) {
    let writes = |write: &RowWrite| write.shape.table == *table && write.shape.op == Op::Insert;
    let troubled: Vec<(u32, usize)> = (0_u32..)
        .zip(batch.units)
        .filter_map(|(unit, of)| {
            let refused = batch
                .refused
                .get(unit as usize)
                .is_some_and(Option::is_some);
            let at = of.work().iter().position(writes)?;
            refused.then_some((unit, at))
        })
        .collect();
    for (unit, at) in troubled {
        batch.conclude(unit, verdict.for_write(at));
    }
}
