//! Settles a batch: its transactions, and the verdict of each unit.
//!
//! All units go into one transaction, in the order of the batch, except those that could notice
//! that they share it. A unit that fails by itself gets its error and does not affect the others.
//! [`super::isolate`] decides what runs again if a whole transaction fails.

use std::ops::Range;

use windrow_core::{Fault, Op, Report, Rung, Tally, Verdict};

use super::deferred_sync::DeferredSync;
use super::send::{UnitResult, UnitRunner};
use crate::connection::Opener;
use crate::fault::Failure;

/// Units that go into one transaction.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) units: Range<usize>,
    /// True once a failure has separated them from the rest.
    pub(super) is_isolated: bool,
    /// True for a unit that never shares a transaction.
    pub(super) is_alone: bool,
}

impl Part {
    pub(super) fn new(units: Range<usize>, is_isolated: bool) -> Self {
        Self {
            units,
            is_isolated,
            is_alone: false,
        }
    }
}

/// A batch under way.
pub(crate) struct Batch<'c> {
    pub(super) runner: UnitRunner<'c>,
    /// Opens a connection for a unit that needs its own; `None` if that cannot be done.
    pub(super) opener: Option<&'c Opener>,
    /// The unit of the first verdict.
    first: usize,
    pub(super) verdicts: Vec<Option<Verdict>>,
    /// The parts that are still to run, the next one at the end.
    pub(super) todo: Vec<Part>,
    pub(super) tally: Tally,
    /// The fault with which all units that are left are returned to the lane, once it is set.
    pub(super) stop: Option<Fault>,
    /// The number of units that failed alone because of the machine.
    pub(super) strikes: u32,
    /// The unit that changed the schema last, and how often.
    pub(super) grown: (usize, usize),
    /// True until a change of the schema failed that also served later rows.
    pub(super) looks_ahead: bool,
    usable: bool,
    pub(super) deferred: Option<DeferredSync>,
    /// True once the batch has tried to wait for the disk only once.
    pub(super) has_tried_deferring: bool,
}

impl<'c> Batch<'c> {
    /// Begins with all units of a packed batch.
    pub(crate) fn new(runner: UnitRunner<'c>, opener: Option<&'c Opener>) -> Self {
        let units = 0..runner.packed.units();
        Self::of(runner, opener, units)
    }

    /// Begins with some units of a packed batch.
    pub(super) fn of(
        runner: UnitRunner<'c>,
        opener: Option<&'c Opener>,
        units: Range<usize>,
    ) -> Self {
        Self {
            runner,
            opener,
            first: units.start,
            verdicts: vec![None; units.len()],
            todo: vec![Part::new(units, false)],
            tally: Tally::default(),
            stop: None,
            strikes: 0,
            grown: (usize::MAX, 0),
            looks_ahead: true,
            usable: true,
            deferred: None,
            has_tried_deferring: false,
        }
    }

    /// Executes all units.
    pub(crate) fn execute(mut self) -> Report {
        self.run_all();
        self.report()
    }

    pub(super) fn run_all(&mut self) {
        while let Some(part) = self.todo.pop() {
            self.run(part);
        }
        let ended = self.deferred.take().map(|e| e.end(self.runner.connection));
        if let Some(Err(failure)) = ended {
            self.doubt(&failure.fault);
        }
    }

    /// Turns successes into unknown outcomes: commits may not have reached the disk.
    fn doubt(&mut self, fault: &Fault) {
        self.usable = false;
        for verdict in self.verdicts.iter_mut().flatten() {
            if matches!(verdict, Verdict::Final(Ok(_))) {
                *verdict = Verdict::Final(Err(Fault::unknown(fault.message.clone()).into()));
            }
        }
    }

    /// Runs one part of the batch as one transaction.
    fn run(&mut self, part: Part) {
        if part.units.is_empty() {
            return;
        }
        if let Some(fault) = &self.stop {
            let verdict = Verdict::RolledBack(fault.clone());
            self.conclude_all(part.units, &verdict);
            return;
        }
        if let Err(failure) = self.begin(&part.units) {
            self.not_begun(part, failure);
            return;
        }
        let Some(part) = self.separate(part) else {
            return;
        };
        let mut end = part.units.end;
        let mut grow = None;
        for unit in part.units.clone() {
            match self.runner.unit(unit) {
                UnitResult::Done(outcome) => self.conclude(unit, Verdict::Final(outcome)),
                UnitResult::Undone(fault, scope) => {
                    self.roll_back();
                    self.undone(part, unit, fault, scope);
                    return;
                }
                UnitResult::Grow(write) => {
                    (end, grow) = (unit, Some(write));
                    break;
                }
            }
        }
        let rest = end..part.units.end;
        if let Some(write) = grow {
            self.todo.push(Part::new(rest, part.is_isolated));
            let before = Part::new(part.units.start..end, part.is_isolated);
            // If it was not committed, those before come first; the write will ask again.
            if self.commit(before) {
                self.grow(end, write);
            }
        } else {
            self.commit(part);
        }
    }

    /// Opens a transaction. One that writes takes the write lock at once, so that it never waits
    /// half-way.
    fn begin(&mut self, units: &Range<usize>) -> Result<(), Failure> {
        let reads = self.reads_only(units);
        let begin = if reads { "BEGIN" } else { "BEGIN IMMEDIATE" };
        self.runner.say(begin)?;
        match self.runner.catalog.refresh(self.runner.connection) {
            Ok(false) => {}
            Ok(true) => self.runner.forget(),
            Err(error) => {
                self.roll_back();
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Returns true if the units only read.
    fn reads_only(&self, units: &Range<usize>) -> bool {
        let packed = self.runner.packed;
        let mut writes = units.clone().flat_map(|u| packed.unit(u));
        writes.all(|w| {
            let shape = packed.write(w).and_then(|w| packed.shape(w.shape));
            shape.is_some_and(|s| s.op == Op::Get)
        })
    }

    /// Commits. Returns true if that succeeded.
    fn commit(&mut self, part: Part) -> bool {
        match self.runner.say("COMMIT") {
            Ok(()) => {
                self.committed(&part);
                true
            }
            Err(failure) => {
                self.roll_back();
                self.refused(part, failure);
                false
            }
        }
    }

    /// Counts a part that was committed.
    fn committed(&mut self, part: &Part) {
        let packed = self.runner.packed;
        let writes: usize = part.units.clone().map(|u| packed.unit(u).len()).sum();
        let rung = match writes {
            _ if part.is_isolated => Rung::Isolated,
            1 if part.is_alone || packed.writes() == 1 => Rung::Solo,
            _ => Rung::Grouped,
        };
        self.tally.add(rung, writes);
        self.tally.commits += u32::from(!part.units.is_empty());
    }

    /// Rolls back. If a transaction is still open then, the connection is given up.
    pub(super) fn roll_back(&mut self) {
        let connection = self.runner.connection;
        if !connection.is_autocommit() {
            // The next condition shows if the transaction has ended.
            drop(self.runner.say("ROLLBACK"));
        }
        if !connection.is_autocommit() {
            self.usable = false;
            self.stop = Some(Fault::unavailable(
                "SQLite could not roll back; the connection is opened again",
            ));
        }
    }

    /// Sets the verdict of a unit.
    pub(super) fn conclude(&mut self, unit: usize, verdict: Verdict) {
        let place = unit.wrapping_sub(self.first);
        if let Some(place) = self.verdicts.get_mut(place) {
            *place = Some(verdict);
        }
    }

    /// Sets the verdict of several units.
    pub(super) fn conclude_all(&mut self, units: Range<usize>, verdict: &Verdict) {
        for unit in units {
            self.conclude(unit, verdict.clone());
        }
    }

    /// Returns the report. A unit without a verdict is a defect.
    fn report(self) -> Report {
        let missing = || {
            let fault = Fault::internal("a unit was left without an outcome");
            Verdict::Final(Err(fault.into()))
        };
        let verdicts = self.verdicts.into_iter();
        Report {
            verdicts: verdicts.map(|v| v.unwrap_or_else(missing)).collect(),
            tally: self.tally,
            usable: self.usable,
        }
    }
}
