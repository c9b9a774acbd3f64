//! Writes a portion without the rows that would be refused.

use windrow_core::{Contents, LoadFault, OnConflict, Rows};

use super::loader::{Order, PortionLoader, Refusal};
use super::row_checks::{Asking, Judge};
use super::stream::Spelling;

/// Maximum number of rows left out of a portion because the server named them. Each costs the time
/// of a portion.
const MAX_UNFORESEEN: usize = 4;

impl PortionLoader {
    /// Leaves out the rows that a refusal is about.
    ///
    /// # Errors
    /// The refusal, if no row may be left out or the refused rows were not found.
    pub(super) async fn leave_out(
        &mut self,
        contents: Contents<'_>,
        refusal: Refusal,
        order: &mut Order,
    ) -> Result<(), LoadFault> {
        let is_new = self.see(refusal.judges);
        let Contents::GoodRows(rows) = contents else {
            return Err(refusal.fault);
        };
        let found = match is_new {
            true => self.found(rows).await?,
            false => {
                order.unforeseen += 1;
                let place = refused_row(&refusal, rows.len());
                let place = place.filter(|_| order.unforeseen <= MAX_UNFORESEEN);
                vec![place.ok_or(refusal.fault)?]
            }
        };
        let known = std::mem::take(&mut order.without);
        order.without = joined(known, found);
        Ok(())
    }

    /// Notes the checks that have refused rows. Returns false if all of them had before.
    fn see(&mut self, judges: &[Judge]) -> bool {
        let new = judges.iter().find(|judge| !self.seen.contains(judge));
        self.seen.extend(new);
        new.is_some()
    }

    /// Returns false if a later row replaces an earlier one: then only rows that are certainly bad
    /// are left out.
    pub(super) fn leaves_out(&self) -> bool {
        let staged = self.layout.staged.as_ref();
        staged.is_none_or(|staged| staged.on_conflict != OnConflict::Update)
    }

    /// Asks the server which rows the checks seen so far would refuse.
    pub(super) async fn found(&mut self, rows: &Rows) -> Result<Vec<usize>, LoadFault> {
        let repeats = match self.seen.contains(&Judge::Repeats) {
            true => self.layout.row_checks.repeats(rows),
            false => Vec::new(),
        };
        let Some(question) = self.layout.row_checks.ask(&self.seen) else {
            return Ok(repeats);
        };
        let targets = &self.layout.columns;
        let mut spelling = question.spelling(targets);
        loop {
            let leaves_out = self.leaves_out();
            let mut asking = Asking::new(&question, targets, rows, spelling, leaves_out);
            let asked = self.wire.converse(1, &mut asking).await;
            asked.map_err(|broken| LoadFault::Again(broken.unavailable()))?;
            if asking.is_odd() && spelling == Spelling::Binary {
                spelling = Spelling::Text;
                continue;
            }
            // A check that could not be asked refuses rows when they are written.
            return Ok(joined(repeats, asking.found().unwrap_or_default()));
        }
    }
}

/// Returns the place of the row that was refused. The server counts only rows that were sent.
fn refused_row(refusal: &Refusal, rows: usize) -> Option<usize> {
    let mut left = refusal.left.iter().peekable();
    let mut sent = (0..rows).filter(|place| left.next_if_eq(&place).is_none());
    sent.nth(refusal.line?.checked_sub(1)?)
}

fn joined(mut all: Vec<usize>, more: Vec<usize>) -> Vec<usize> {
    all.extend(more);
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use windrow_core::Fault;

    use super::*;

    #[test]
    fn the_row_that_is_meant_is_found_among_those_that_were_sent() {
        let refusal = |line| Refusal {
            fault: LoadFault::Refused(Fault::invalid("m")),
            judges: &[],
            line,
            left: vec![0, 3, 4],
        };
        let place = |line| refused_row(&refusal(Some(line)), 8);
        assert_eq!((place(1), place(2), place(3)), (Some(1), Some(2), Some(5)));
        assert_eq!((place(5), place(6), place(0)), (Some(7), None, None));
        assert_eq!(refused_row(&refusal(None), 8), None);
    }
}
