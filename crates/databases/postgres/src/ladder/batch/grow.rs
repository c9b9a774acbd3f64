//! What the rows of a batch ask of their tables.

use windrow_core::{Op, TableName, Verdict};
use windrow_database::wish::Wish;

use super::{Batch, Prospect};

impl<'a> Batch<'a> {
    /// What the rows that do not fit ask of their tables.
    pub(crate) fn wishes(&self) -> Vec<(&'a TableName, Wish)> {
        let mut wishes: Vec<(&TableName, Wish)> = Vec::new();
        for ((unit, prospect), verdict) in
            self.units.iter().zip(&self.prospects).zip(&self.verdicts)
        {
            if *prospect == Prospect::Good || verdict.is_some() {
                continue;
            }
            for write in unit.writes() {
                let shape = &write.shape;
                if !matches!(shape.op, Op::Insert | Op::Update) {
                    continue;
                }
                let place = wishes.iter().position(|(name, _)| **name == shape.table);
                let place = place.unwrap_or_else(|| {
                    wishes.push((&shape.table, Wish::default()));
                    wishes.len() - 1
                });
                if let Some((_, wish)) = wishes.get_mut(place) {
                    wish.see(shape, write.values());
                }
            }
        }
        wishes
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
