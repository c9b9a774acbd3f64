//! A portion without the rows that would be refused.

use windrow_core::{Claim, Filtered, LoadFault, OnConflict, Rows};

use super::loader::{Ended, Order, PortionLoader, Refusal};
use super::row_checks::{Asking, Judge};
use super::stream::Spelling;
use super::transfer::Marked;

/// How many rows that could not be foreseen are left out of a portion, one after the other, each of
/// which costs the time of a portion.
const UNFORESEEN: usize = 4;

impl PortionLoader {
    /// Somebody of these has refused rows. False: that was known of all of them.
    pub(super) fn see(&mut self, judges: &[Judge]) -> bool {
        let new = judges.iter().find(|judge| !self.seen.contains(judge));
        self.seen.extend(new);
        new.is_some()
    }

    pub(super) async fn without_bad(
        &mut self,
        rows: &Rows,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        let mut spelling = self.in_parts.next(self.layout.binary);
        let mut without = self.found(rows).await?;
        let mut unforeseen = 0;
        loop {
            let order = Order {
                marked: claim.map_or(Marked::Not, Marked::Parts),
                spelling,
                without: &without,
                leaves_out: self.leaves_out(),
            };
            match self.attempt(rows, order).await? {
                Ended::Done(done) => return Ok(done),
                Ended::Misspelled(misspelled) if spelling == Spelling::Text => {
                    return Err(LoadFault::Refused(misspelled.fault()));
                }
                Ended::Misspelled(_) => {
                    self.in_parts.turn_to_text();
                    spelling = Spelling::Text;
                }
                Ended::Repeated(_) if self.learns_of_repeated() => {}
                Ended::Repeated(fault) => return Err(fault),
                Ended::Refused(refusal) => {
                    if self.see(refusal.judges) {
                        let known = std::mem::take(&mut without);
                        without = joined(known, self.found(rows).await?);
                        continue;
                    }
                    unforeseen += 1;
                    let place = refused_row(&refusal, rows.len());
                    let Some(place) = place.filter(|_| unforeseen <= UNFORESEEN) else {
                        return Err(refusal.fault);
                    };
                    without = joined(without, vec![place]);
                }
            }
        }
    }

    /// Where a later row takes the place of an earlier one, only what is certainly bad is left out.
    fn leaves_out(&self) -> bool {
        let staged = self.layout.staged.as_ref();
        staged.is_none_or(|staged| staged.on_conflict != OnConflict::Update)
    }

    /// Asks which rows are bad, as far as that can be asked.
    async fn found(&mut self, rows: &Rows) -> Result<Vec<usize>, LoadFault> {
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
            // Who cannot be asked says it when the rows come.
            return Ok(joined(repeats, asking.found().unwrap_or_default()));
        }
    }
}

/// The place of the row that was refused: the server counts what was sent.
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
