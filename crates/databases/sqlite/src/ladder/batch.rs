//! One batch: the transactions it takes, and what is done when one of them fails.
//!
//! All units go into one transaction, but for those that could tell that they share it: each of
//! these has its own. A unit that fails by itself has its error and leaves the others alone. When
//! the transaction as a whole is lost, its units are run again in smaller ones until each unit has
//! the outcome that it has alone: around a unit that took the transaction with it, by halves where
//! the commit failed and names nobody. The order is always that of the batch.

use std::ops::Range;

use windrow_core::{Fault, Op, Report, RowDone, Rung, Tally, UnitFault, Verdict};

use super::deferred_sync::{DeferredSync, relax};
use super::grow;
use super::moments::Moments;
use super::plans::Plans;
use super::unit::{Needs, Step, UnitRunner};
use crate::catalog::cache::Catalog;
use crate::connection::Opener;
use crate::fault::{Failure, Scope};

/// After so many units have failed alone because the disk is full or broken, the rest of the batch
/// is told the same without being tried alone.
const STRIKES: u32 = 3;

/// Units that go into one transaction.
#[derive(Debug)]
struct Work {
    units: Range<usize>,
    /// True once a failure made them go apart from the rest.
    isolated: bool,
    /// True for a unit that never shares a transaction.
    apart: bool,
}

impl Work {
    fn new(units: Range<usize>, isolated: bool) -> Self {
        let apart = false;
        Self {
            units,
            isolated,
            apart,
        }
    }
}

/// A batch under way.
pub(crate) struct Batch<'c> {
    runner: UnitRunner<'c>,
    /// Where a unit gets a connection of its own; `None` where it cannot.
    opener: Option<&'c Opener>,
    /// The unit that the first verdict belongs to.
    first: usize,
    verdicts: Vec<Option<Verdict<RowDone>>>,
    /// What is still to be done, the next at the end.
    work: Vec<Work>,
    tally: Tally,
    /// Once set, all that is left is given back with it.
    stop: Option<Fault>,
    strikes: u32,
    /// How often a unit had the schema changed.
    grown: (usize, usize),
    /// False once a change of the schema failed that looked at more rows than the one that needed
    /// it.
    ahead: bool,
    usable: bool,
    deferred: Option<DeferredSync>,
    /// True once it has been looked whether commits can be deferred.
    looked: bool,
}

impl<'c> Batch<'c> {
    pub(crate) fn new(runner: UnitRunner<'c>, opener: Option<&'c Opener>) -> Self {
        let units = 0..runner.packed.units();
        Self::of(runner, opener, units)
    }

    fn of(runner: UnitRunner<'c>, opener: Option<&'c Opener>, units: Range<usize>) -> Self {
        Self {
            runner,
            opener,
            first: units.start,
            verdicts: vec![None; units.len()],
            work: vec![Work::new(units, false)],
            tally: Tally::default(),
            stop: None,
            strikes: 0,
            grown: (usize::MAX, 0),
            ahead: true,
            usable: true,
            deferred: None,
            looked: false,
        }
    }

    /// Executes all units.
    pub(crate) fn execute(mut self) -> Report<RowDone> {
        self.run_all();
        self.report()
    }

    fn run_all(&mut self) {
        while let Some(work) = self.work.pop() {
            self.run(work);
        }
        let ended = self.deferred.take().map(|e| e.end(self.runner.connection));
        if let Some(Err(failure)) = ended {
            self.unsure(&failure.fault);
        }
    }

    /// What was committed may not be on disk.
    fn unsure(&mut self, fault: &Fault) {
        self.usable = false;
        for verdict in self.verdicts.iter_mut().flatten() {
            if matches!(verdict, Verdict::Final(Ok(_))) {
                *verdict = Verdict::Final(Err(Fault::unknown(fault.message.clone()).into()));
            }
        }
    }

    fn run(&mut self, work: Work) {
        if work.units.is_empty() {
            return;
        }
        if let Some(fault) = &self.stop {
            let verdict = Verdict::RolledBack(fault.clone());
            self.tell_all(work.units, &verdict);
            return;
        }
        if let Err(failure) = self.begin(&work.units) {
            self.lost(work, failure);
            return;
        }
        let Some(work) = self.part(work) else {
            return;
        };
        let mut end = work.units.end;
        let mut grow = None;
        for unit in work.units.clone() {
            match self.runner.unit(unit) {
                Step::Told(outcome) => self.tell(unit, Verdict::Final(outcome)),
                Step::Undone(fault, scope) => {
                    self.roll_back();
                    self.undone(work, unit, fault, scope);
                    return;
                }
                Step::Grow(write) => {
                    (end, grow) = (unit, Some(write));
                    break;
                }
            }
        }
        let rest = end..work.units.end;
        if let Some(write) = grow {
            self.work.push(Work::new(rest, work.isolated));
            let before = Work::new(work.units.start..end, work.isolated);
            // If it was not committed, those before come first; the write will ask again.
            if self.commit(before) {
                self.grow(end, write);
            }
        } else {
            self.commit(work);
        }
    }

    /// Leaves in the transaction that has just begun what may share it, the rest comes behind it.
    /// `None` where nothing can be done in this transaction.
    fn part(&mut self, mut work: Work) -> Option<Work> {
        let Range { start, end } = work.units;
        let mut apart = start..end;
        let Some((at, needs)) = apart.find_map(|unit| match self.runner.needs(unit) {
            Needs::Nothing => None,
            needs => Some((unit, needs)),
        }) else {
            return Some(work);
        };
        let cut = at.max(start + 1);
        self.work.push(Work::new(cut..end, work.isolated));
        work.units = start..cut;
        if at > start {
            return Some(work);
        }
        work.apart = true;
        if !self.looked && self.verdicts.len() > 1 {
            self.looked = true;
            self.roll_back();
            self.deferred = DeferredSync::begin(self.runner.connection);
            self.work.push(work);
            return None;
        }
        match self.opener {
            Some(opener) if needs == Needs::Connection => {
                self.roll_back();
                self.afresh(work, opener);
                None
            }
            _ => Some(work),
        }
    }

    /// Executes a unit on a connection of its own.
    fn afresh(&mut self, work: Work, opener: &Opener) {
        let connection = match opener.open() {
            Ok(connection) => connection,
            Err(fault) if fault.class.may_retry() => return self.busy(work, fault),
            Err(fault) => return self.tell_all(work.units, &Verdict::Final(Err(fault.into()))),
        };
        if self.deferred.is_some() && relax(&connection).is_err() {
            let fault = Fault::unavailable("SQLite's connection could not be prepared");
            return self.busy(work, fault);
        }
        let (mut catalog, mut plans) = (Catalog::default(), Plans::default());
        // To open a connection takes longer than a moment.
        let mut moments = Moments::default();
        let given = (self.runner.packed, self.runner.rules);
        let runner = UnitRunner::new(&connection, &mut catalog, &mut plans, &mut moments, given);
        let mut batch = Batch::of(runner, None, work.units.clone());
        batch.run_all();
        self.stop = batch.stop.take();
        for (sum, count) in self.tally.rungs.iter_mut().zip(batch.tally.rungs) {
            *sum += count;
        }
        self.tally.commits += batch.tally.commits;
        if let Some(verdict) = batch.verdicts.pop().flatten() {
            self.tell_all(work.units, &verdict);
        }
    }

    /// Opens a transaction: one that writes from the start, so that it never has to wait half-way,
    /// unless all units only read.
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

    fn reads_only(&self, units: &Range<usize>) -> bool {
        let packed = self.runner.packed;
        let mut writes = units.clone().flat_map(|u| packed.unit(u));
        writes.all(|w| {
            let shape = packed.write(w).and_then(|w| packed.shape(w.shape));
            shape.is_some_and(|s| s.op == Op::Get)
        })
    }

    /// Commits; true if that succeeded.
    fn commit(&mut self, work: Work) -> bool {
        match self.runner.say("COMMIT") {
            Ok(()) => {
                self.committed(&work);
                true
            }
            Err(failure) => {
                self.roll_back();
                self.refused(work, failure);
                false
            }
        }
    }

    fn committed(&mut self, work: &Work) {
        let packed = self.runner.packed;
        let writes: usize = work.units.clone().map(|u| packed.unit(u).len()).sum();
        let rung = match writes {
            _ if work.isolated => Rung::Isolated,
            1 if work.apart || packed.writes() == 1 => Rung::Solo,
            _ => Rung::Grouped,
        };
        self.tally.add(rung, writes);
        self.tally.commits += u32::from(!work.units.is_empty());
    }

    /// A transaction that could not be begun.
    fn lost(&mut self, work: Work, failure: Failure) {
        if failure.fault.class.may_retry() {
            self.busy(work, failure.fault);
        } else {
            self.tell_all(work.units, &Verdict::Final(Err(failure.fault.into())));
        }
    }

    /// A unit that took the transaction with it: those before it go again, then it goes alone, then
    /// those behind it.
    fn undone(&mut self, work: Work, unit: usize, fault: UnitFault<RowDone>, scope: Scope) {
        let Range { start, end } = work.units;
        match scope {
            Scope::Busy => self.busy(work, fault.fault),
            _ if end - start == 1 => {
                self.strike(scope);
                self.tell(unit, Verdict::Final(Err(fault)));
                self.tally
                    .add(Rung::Isolated, self.runner.packed.unit(unit).len());
            }
            _ if self.struck(scope) => {
                self.tell_all(start..end, &Verdict::Final(Err(fault.fault.into())));
            }
            _ => self.run_again([start..unit, unit..unit + 1, unit + 1..end]),
        }
    }

    /// A commit that failed and was rolled back: nobody is named, so the guilty are found by
    /// halving.
    fn refused(&mut self, work: Work, failure: Failure) {
        let Failure { fault, scope } = failure;
        let Range { start, end } = work.units;
        match scope {
            Scope::Busy => self.busy(work, fault),
            Scope::Sync => {
                // The log may hold the whole commit; only the next opening of the file will show.
                let unknown = Fault::unknown(fault.message);
                self.tell_all(start..end, &Verdict::Final(Err(unknown.into())));
            }
            _ if end - start <= 1 || self.struck(scope) => {
                self.strike(scope);
                self.tell_all(start..end, &Verdict::Final(Err(fault.into())));
            }
            _ => {
                let middle = start + (end - start) / 2;
                self.run_again([start..middle, middle..end, end..end]);
            }
        }
    }

    fn busy(&mut self, work: Work, fault: Fault) {
        self.tell_all(work.units, &Verdict::RolledBack(fault.clone()));
        self.stop = Some(fault);
    }

    fn strike(&mut self, scope: Scope) {
        self.strikes += u32::from(scope == Scope::Machine);
    }

    fn struck(&self, scope: Scope) -> bool {
        scope == Scope::Machine && self.strikes >= STRIKES
    }

    fn run_again(&mut self, parts: [Range<usize>; 3]) {
        let parts = parts.into_iter().rev();
        self.work.extend(parts.map(|units| Work::new(units, true)));
    }

    /// Creates or extends a table for a write, so that its unit can be run again. If that fails,
    /// the unit has failed.
    fn grow(&mut self, unit: usize, write: usize) {
        if self.stop.is_some() {
            return;
        }
        self.runner.forget();
        let rows = self.runner.packed.unit(unit).len();
        let failed = if self.patience(unit, rows) {
            grow::grow(&mut self.runner, unit, write, self.ahead)
        } else {
            let text = "the table does not come to fit the row, however it is changed";
            Err(Failure::of_write(Fault::internal(text)))
        };
        match failed {
            Ok(()) => {}
            Err(failure) if failure.scope == Scope::Busy => self.stop = Some(failure.fault),
            Err(_) if self.ahead => {
                // Rows further on may be to blame: from here on each has the schema changed for
                // itself.
                self.ahead = false;
                self.grow(unit, write);
            }
            Err(failure) => self.outgrown(unit, write, failure.fault),
        }
    }

    /// The schema could not be changed for this unit, which is the first of the work that is next.
    fn outgrown(&mut self, unit: usize, write: usize, fault: Fault) {
        let at = write.saturating_sub(self.runner.packed.unit(unit).start);
        self.tell(
            unit,
            Verdict::Final(Err(UnitFault {
                at,
                fault,
                before: Vec::new(),
            })),
        );
        if let Some(next) = self.work.iter_mut().rev().find(|w| w.units.start == unit) {
            next.units.start = unit + 1;
        }
    }

    /// False once a unit has had the schema changed more often than its writes can need.
    fn patience(&mut self, unit: usize, writes: usize) -> bool {
        if self.grown.0 != unit {
            self.grown = (unit, 0);
        }
        self.grown.1 += 1;
        self.grown.1 <= 2 * writes + 2
    }

    fn roll_back(&mut self) {
        let connection = self.runner.connection;
        if !connection.is_autocommit() {
            // What counts is whether the transaction is gone, which is looked at next.
            drop(self.runner.say("ROLLBACK"));
        }
        if !connection.is_autocommit() {
            self.usable = false;
            self.stop = Some(Fault::unavailable(
                "SQLite could not roll back; the connection is opened anew",
            ));
        }
    }

    fn tell(&mut self, unit: usize, verdict: Verdict<RowDone>) {
        let place = unit.wrapping_sub(self.first);
        if let Some(place) = self.verdicts.get_mut(place) {
            *place = Some(verdict);
        }
    }

    fn tell_all(&mut self, units: Range<usize>, verdict: &Verdict<RowDone>) {
        for unit in units {
            self.tell(unit, verdict.clone());
        }
    }

    fn report(self) -> Report<RowDone> {
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
