//! The results of a body of many rows, kept small: runs of equal successes are one entry.

use std::borrow::Cow;
use std::mem::size_of;

use windrow_core::{Budget, Done, Fault, Permit, UnitOutcome};

use crate::body::charge::Charge;
use crate::query::Results;

/// Past so many errors in one body only their codes are kept.
pub(crate) const KEPT_ERRORS: u64 = 100_000;

/// One or more results in a row.
#[derive(Debug)]
pub(crate) enum Run {
    /// `times` successes of `rows` rows each.
    Done { rows: u64, times: u64 },
    /// A success that gave something back.
    Returned(Box<Done>),
    /// An error.
    Error(Box<Fault>),
    /// `times` errors of which only the code was kept.
    Code { code: Cow<'static, str>, times: u64 },
}

/// What became of the rows so far, in their order.
#[derive(Debug)]
pub(crate) struct Ledger {
    wanted: Results,
    runs: Vec<Run>,
    count: u64,
    rows: u64,
    errors: u64,
    charge: Charge,
}

impl Ledger {
    /// An empty one. What it keeps is charged to the budget.
    pub(crate) fn new(wanted: Results, budget: Budget) -> Self {
        Self {
            wanted,
            runs: Vec::new(),
            count: 0,
            rows: 0,
            errors: 0,
            charge: Charge::new(budget),
        }
    }

    /// Adds the outcome of a unit of one write.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Overloaded`] if the results so far do not fit the budget; this one is counted, not kept.
    pub(crate) fn push(&mut self, outcome: UnitOutcome) -> Result<(), Fault> {
        match outcome {
            Ok(dones) => dones.into_iter().try_for_each(|done| self.done(done)),
            Err(failed) => self.error(failed.fault),
        }
    }

    /// Adds a success.
    pub(crate) fn done(&mut self, mut done: Done) -> Result<(), Fault> {
        self.count += 1;
        self.rows += done.rows;
        match self.wanted {
            Results::All => {}
            Results::Errors => {
                // Only how many there were before the next error is told.
                done = Done::default();
            }
            Results::None => return Ok(()),
        }
        if done.returned.is_some() {
            let size = returned_bytes(&done);
            return self.keep(Run::Returned(Box::new(done)), size);
        }
        match self.runs.last_mut() {
            Some(Run::Done { rows, times }) if *rows == done.rows => {
                *times += 1;
                Ok(())
            }
            _ => self.keep(
                Run::Done {
                    rows: done.rows,
                    times: 1,
                },
                0,
            ),
        }
    }

    fn error(&mut self, fault: Fault) -> Result<(), Fault> {
        self.count += 1;
        self.errors += 1;
        if self.wanted == Results::None {
            return Ok(());
        }
        if self.errors <= KEPT_ERRORS {
            let size = fault.bytes();
            return self.keep(Run::Error(Box::new(fault)), size);
        }
        match self.runs.last_mut() {
            Some(Run::Code { code, times }) if *code == fault.code => {
                *times += 1;
                Ok(())
            }
            _ => self.keep(
                Run::Code {
                    code: fault.code,
                    times: 1,
                },
                0,
            ),
        }
    }

    fn keep(&mut self, run: Run, size: usize) -> Result<(), Fault> {
        self.charge.add(size + size_of::<Run>()).map_err(|fault| {
            fault.with_hint(Some(
                "the results of this body do not fit; ask for ?results=errors or none, or send smaller bodies",
            ))
        })?;
        self.runs.push(run);
        Ok(())
    }

    /// True where nothing was added yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn errors(&self) -> u64 {
        self.errors
    }

    pub(crate) fn wanted(&self) -> Results {
        self.wanted
    }

    /// The runs, and the permit for their memory.
    pub(crate) fn into_runs(self) -> (Vec<Run>, Permit) {
        (self.runs, self.charge.into_permit())
    }
}

/// Bytes that a success with returned values takes.
pub(crate) fn returned_bytes(done: &Done) -> usize {
    let rows = done.returned.iter().flat_map(|returned| &returned.rows);
    let values: usize = rows
        .flat_map(|row| row.iter())
        .map(windrow_core::Value::bytes)
        .sum();
    size_of::<Done>() + size_of::<windrow_core::Returned>() + values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> Fault {
        Fault::new(windrow_core::FaultClass::Unique, "23505", "twice")
    }

    #[test]
    fn a_hundred_million_good_rows_are_one_run() {
        let budget = Budget::new(1 << 20);
        let mut ledger = Ledger::new(Results::All, budget.clone());
        for _ in 0..1_000_000 {
            ledger.done(Done::rows(1)).unwrap();
        }
        assert_eq!((ledger.rows(), ledger.runs.len()), (1_000_000, 1));
        assert!(budget.held() <= 64 << 10);
    }

    #[test]
    fn past_a_number_of_errors_only_codes_are_kept() {
        let mut ledger = Ledger::new(Results::Errors, Budget::new(1 << 30));
        for _ in 0..KEPT_ERRORS + 5 {
            ledger.push(Err(fault().into())).unwrap();
        }
        assert_eq!(ledger.errors(), KEPT_ERRORS + 5);
        assert_eq!(ledger.runs.len() as u64, KEPT_ERRORS + 1);
        assert!(matches!(
            ledger.runs.last(),
            Some(Run::Code { times: 5, .. })
        ));
    }

    #[test]
    fn what_is_kept_is_charged_and_refused_past_the_budget() {
        let budget = Budget::new(200 << 10);
        let mut ledger = Ledger::new(Results::All, budget.clone());
        let kept = (0..10_000)
            .take_while(|_| ledger.push(Err(fault().into())).is_ok())
            .count();
        assert!(kept > 100 && kept < 10_000);
        assert!(budget.held() > 150 << 10);
        drop(ledger);
        assert_eq!(budget.held(), 0);
    }
}
