//! What the rows of a batch ask of their tables.

use windrow_core::{TableName, Verdict};
use windrow_database::wish::{self, Wish};

use super::{Batch, Prospect};

impl<'a> Batch<'a> {
    /// What the rows that do not fit ask of their tables.
    pub(crate) fn wishes(&self) -> Vec<(&'a TableName, Wish)> {
        let units = self.units.iter().zip(&self.prospects).zip(&self.verdicts);
        let open = units
            .filter(|((_, prospect), verdict)| **prospect != Prospect::Good && verdict.is_none());
        wish::by_table(open.flat_map(|((unit, _), _)| unit.writes()), Wish::see)
    }

    /// All units that are apart and write to the table get the verdict.
    pub(crate) fn conclude_apart(&mut self, table: &TableName, verdict: &Verdict) {
        let units = self.units.iter().zip(&self.prospects);
        for ((unit, prospect), slot) in units.zip(&mut self.verdicts) {
            if *prospect == Prospect::Good || slot.is_some() {
                continue;
            }
            let mut writes = unit.writes().iter();
            let at = writes.position(|w| w.shape.table == *table);
            *slot = at.map(|at| verdict.for_write(at));
        }
    }
}
