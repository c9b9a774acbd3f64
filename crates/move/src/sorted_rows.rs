//! The rows of a batch to another database, sorted by their outcomes.

use windrow_core::{Fault, FaultClass, TableName, UnitOutcome};

use super::batch::Refusal;
use super::order::Order;
use super::shapes::of_key;
use super::trouble::{Trouble, is_of_row, is_retried};

/// The outcomes of the rows of a batch, by their places.
#[derive(Default)]
pub(super) struct SortedRows {
    /// Rows that are in their destinations.
    pub(super) gone: Vec<usize>,
    /// Rows whose markers existed before.
    pub(super) met: Vec<usize>,
    /// Rows that are refused.
    pub(super) refused: Vec<Refusal>,
    /// The fault of rows that were not written for a reason outside of them.
    pub(super) passing: Option<Fault>,
}

impl SortedRows {
    /// Returns true if every row was refused, and each for a missing value.
    pub(super) fn is_nothing_but_empty(&self) -> bool {
        let others = self.gone.is_empty() && self.met.is_empty() && self.passing.is_none();
        let is_empty = |refusal: &Refusal| refusal.fault.class == FaultClass::NotNull;
        others && self.refused.iter().all(is_empty)
    }

    /// Adds the outcome of a row. `markers` is the number of writes of its marker, which come
    /// first.
    ///
    /// # Errors
    /// A fault that concerns no single row.
    pub(super) fn add(
        &mut self,
        place: usize,
        table: &TableName,
        outcome: UnitOutcome,
        order: &Order,
        markers: usize,
    ) -> Result<(), Trouble> {
        let Err(failed) = outcome else {
            self.gone.push(place);
            return Ok(());
        };
        let fault = match markers {
            0 => of_key(failed.fault, order),
            _ => failed.fault,
        };
        let routed = order.plan.route.is_some();
        let of_marker = failed.at < markers;
        if is_retried(&fault) {
            self.passing = Some(fault);
        } else if of_marker && fault.class == FaultClass::Unique {
            self.met.push(place);
        } else if !of_marker && is_of_row(&fault, routed) {
            self.refused
                .push(Refusal::new(place, table.to_string(), fault));
        } else {
            return Err(Trouble::of(table.to_string(), fault));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passing_faults_concern_no_row() {
        let away = Fault::unavailable("x");
        assert!(is_retried(&away) && !is_of_row(&away, true));
        let unknown = Fault::unknown("x");
        assert!(is_retried(&unknown) && !is_of_row(&unknown, true));
    }
}
