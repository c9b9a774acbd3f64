//! The results of a body of many rows in compact form: consecutive equal successes are one entry.

use std::borrow::Cow;
use std::mem::size_of;
use std::time::Duration;

use tokio::time::timeout;
use windrow_core::{Budget, Fault, Permit, UnitOutcome, WriteDone};

use crate::ack::Ack;

/// The results that the client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Results {
    #[default]
    All,
    Errors,
    None,
}

/// The number of errors in one body after which only codes are kept.
pub(crate) const KEPT_ERRORS: u64 = 100_000;

/// The bytes of results that are not charged, because they fit into a connection's buffers.
const FREE_BYTES: usize = 16 << 10;
/// The steps in which memory is taken.
const STEP_BYTES: usize = 64 << 10;

/// One or more consecutive results.
#[derive(Debug)]
pub(crate) enum Run {
    /// `times` successes of `rows` rows each.
    Done { rows: u64, times: u64 },
    /// A success that returned values.
    Returned(Box<WriteDone>),
    /// An error.
    Error(Box<Fault>),
    /// `times` errors of which only the code was kept.
    Code { code: Cow<'static, str>, times: u64 },
}

/// The outcomes of the rows so far, in their order.
#[derive(Debug)]
pub(crate) struct Ledger {
    wanted: Results,
    ack: Ack,
    runs: Vec<Run>,
    rows: u64,
    errors: u64,
    /// The bytes that are kept, whether or not `permit` covers them yet.
    due: usize,
    permit: Permit,
    budget: Budget,
}

impl Ledger {
    /// Returns an empty ledger, charged to the budget. `ack`: the kind of its successes.
    pub(crate) fn new(wanted: Results, ack: Ack, budget: Budget) -> Self {
        Self {
            wanted,
            ack,
            runs: Vec::new(),
            rows: 0,
            errors: 0,
            due: 0,
            permit: Permit::empty(),
            budget,
        }
    }

    /// Adds the outcome of a unit of one write.
    pub(crate) fn push(&mut self, outcome: UnitOutcome) {
        match outcome {
            Ok(dones) => dones.into_iter().for_each(|done| self.done(done)),
            Err(failed) => self.error(failed.fault),
        }
    }

    /// Adds a success.
    pub(crate) fn done(&mut self, mut done: WriteDone) {
        self.rows += done.rows;
        match self.wanted {
            Results::All => {}
            // Before an error, the answer has only the number of successes.
            Results::Errors => done = WriteDone::default(),
            Results::None => return,
        }
        if done.returned.is_some() {
            let size = returned_bytes(&done);
            return self.keep(Run::Returned(Box::new(done)), size);
        }
        match self.runs.last_mut() {
            Some(Run::Done { rows, times }) if *rows == done.rows => *times += 1,
            _ => self.keep(
                Run::Done {
                    rows: done.rows,
                    times: 1,
                },
                0,
            ),
        }
    }

    fn error(&mut self, fault: Fault) {
        self.errors += 1;
        if self.wanted == Results::None {
            return;
        }
        if self.errors <= KEPT_ERRORS {
            let size = fault.bytes();
            return self.keep(Run::Error(Box::new(fault)), size);
        }
        match self.runs.last_mut() {
            Some(Run::Code { code, times }) if *code == fault.code => *times += 1,
            _ => self.keep(
                Run::Code {
                    code: fault.code,
                    times: 1,
                },
                0,
            ),
        }
    }

    fn keep(&mut self, run: Run, size: usize) {
        self.due += size + size_of::<Run>();
        self.runs.push(run);
    }

    /// Charges the added results. Waits for memory, but not forever: requests that hold results
    /// could be waiting for each other. Cancel safe.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Overloaded`] if there is still no memory after `wait`.
    pub(crate) async fn charge(&mut self, wait: Duration) -> Result<(), Fault> {
        let missing = self.due.saturating_sub(self.permit.bytes() + FREE_BYTES);
        if missing == 0 {
            return Ok(());
        }
        let room = missing
            .next_multiple_of(STEP_BYTES)
            .min(self.budget.total());
        let more = match self.budget.try_take(room) {
            Ok(more) => Ok(more),
            Err(full) => timeout(wait, self.budget.take(missing))
                .await
                .unwrap_or(Err(full)),
        };
        self.permit.merge(more.map_err(|fault| {
            fault.with_hint(Some(
                "the results of this body do not fit; ask for ?results=errors or none, or send smaller bodies",
            ))
        })?);
        Ok(())
    }

    /// True if memory was charged.
    pub(crate) fn holds_memory(&self) -> bool {
        self.permit.bytes() > 0
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn errors(&self) -> u64 {
        self.errors
    }

    pub(crate) fn ack(&self) -> Ack {
        self.ack
    }

    pub(crate) fn wanted(&self) -> Results {
        self.wanted
    }

    /// Returns the runs, and the permit for their memory.
    pub(crate) fn into_runs(self) -> (Vec<Run>, Permit) {
        (self.runs, self.permit)
    }
}

/// Returns the bytes that a success with returned values takes.
pub(crate) fn returned_bytes(done: &WriteDone) -> usize {
    let rows = done.returned.iter().flat_map(|returned| &returned.rows);
    let values: usize = rows
        .flat_map(|row| row.iter())
        .map(windrow_core::Value::bytes)
        .sum();
    size_of::<WriteDone>() + size_of::<windrow_core::Returned>() + values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> Fault {
        Fault::new(windrow_core::FaultClass::Unique, "23505", "twice")
    }

    const NO_TIME: Duration = Duration::ZERO;

    #[tokio::test]
    async fn a_hundred_million_good_rows_are_one_run() {
        let budget = Budget::new(1 << 20);
        let mut ledger = Ledger::new(Results::All, Ack::Commit, budget.clone());
        for _ in 0..1_000_000 {
            ledger.done(WriteDone::rows(1));
        }
        ledger.charge(NO_TIME).await.unwrap();
        assert_eq!((ledger.rows(), ledger.runs.len()), (1_000_000, 1));
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn past_a_number_of_errors_only_codes_are_kept() {
        let mut ledger = Ledger::new(Results::Errors, Ack::Commit, Budget::new(1 << 30));
        for _ in 0..KEPT_ERRORS + 5 {
            ledger.push(Err(fault().into()));
        }
        assert_eq!(ledger.errors(), KEPT_ERRORS + 5);
        assert_eq!(ledger.runs.len() as u64, KEPT_ERRORS + 1);
        assert!(matches!(
            ledger.runs.last(),
            Some(Run::Code { times: 5, .. })
        ));
    }

    #[tokio::test]
    async fn what_is_kept_is_charged_and_refused_past_the_budget() {
        let budget = Budget::new(200 << 10);
        let mut ledger = Ledger::new(Results::All, Ack::Commit, budget.clone());
        let mut kept = 0;
        while ledger.charge(NO_TIME).await.is_ok() {
            ledger.push(Err(fault().into()));
            kept += 1;
            assert!(kept < 10_000);
        }
        assert!(budget.held() > 150 << 10);
        drop(ledger);
        assert_eq!(budget.held(), 0);
    }
}
