//! Isolates failures: decides which units run again, and how many together, after a transaction has
//! failed as a whole.
//!
//! If a unit rolled back the transaction, the units around it run again and it runs alone. If the
//! commit failed, which names no unit, the part is halved. The order is always that of the batch.

use std::ops::Range;

use windrow_core::{Fault, Rung, UnitFault, Verdict};

use super::deferred_sync::{DeferredSync, relax};
use super::moments::Moments;
use super::plan::Plans;
use super::send::{Needs, UnitRunner};
use super::settle::{Batch, Part};
use crate::catalog::cache::Catalog;
use crate::connection::Opener;
use crate::fault::{Failure, Scope};

/// After so many units failed alone because the disk is full or broken, the rest of the batch gets
/// the same error without being tried alone.
const MAX_STRIKES: u32 = 3;

impl Batch<'_> {
    /// Cuts a part before a unit that may not share its transaction. The rest runs after it.
    /// Returns `None` if the part does not run in this transaction.
    pub(super) fn separate(&mut self, mut part: Part) -> Option<Part> {
        let Range { start, end } = part.units;
        let mut apart = start..end;
        let Some((at, needs)) = apart.find_map(|unit| match self.runner.needs(unit) {
            Needs::Nothing => None,
            needs => Some((unit, needs)),
        }) else {
            return Some(part);
        };
        let cut = at.max(start + 1);
        self.todo.push(Part::new(cut..end, part.is_isolated));
        part.units = start..cut;
        if at > start {
            return Some(part);
        }
        part.is_alone = true;
        if !self.has_tried_deferring && self.verdicts.len() > 1 {
            self.has_tried_deferring = true;
            self.roll_back();
            self.deferred = DeferredSync::begin(self.runner.connection);
            self.todo.push(part);
            return None;
        }
        match self.opener {
            Some(opener) if needs == Needs::Connection => {
                self.roll_back();
                self.run_on_new_connection(part, opener);
                None
            }
            _ => Some(part),
        }
    }

    /// Runs a unit on a connection of its own.
    fn run_on_new_connection(&mut self, part: Part, opener: &Opener) {
        let connection = match opener.open() {
            Ok(connection) => connection,
            Err(fault) if fault.may_retry() => return self.busy(part, fault),
            Err(fault) => return self.conclude_all(part.units, &Verdict::Final(Err(fault.into()))),
        };
        if self.deferred.is_some() && relax(&connection).is_err() {
            let fault = Fault::unavailable("SQLite's connection could not be prepared");
            return self.busy(part, fault);
        }
        let (mut catalog, mut plans) = (Catalog::default(), Plans::default());
        // Opening a connection takes longer than a millisecond.
        let mut moments = Moments::default();
        let given = (self.runner.packed, self.runner.rules);
        let runner = UnitRunner::new(&connection, &mut catalog, &mut plans, &mut moments, given);
        let mut batch = Batch::of(runner, None, part.units.clone());
        batch.run_all();
        self.stop = batch.stop.take();
        for (sum, count) in self.tally.rungs.iter_mut().zip(batch.tally.rungs) {
            *sum += count;
        }
        self.tally.commits += batch.tally.commits;
        if let Some(verdict) = batch.verdicts.pop().flatten() {
            self.conclude_all(part.units, &verdict);
        }
    }

    /// Settles a part whose transaction could not begin.
    pub(super) fn not_begun(&mut self, part: Part, failure: Failure) {
        if failure.fault.may_retry() {
            self.busy(part, failure.fault);
        } else {
            self.conclude_all(part.units, &Verdict::Final(Err(failure.fault.into())));
        }
    }

    /// Settles a part of which one unit rolled back the transaction: the units before it run again,
    /// then it runs alone, then the units after it.
    pub(super) fn undone(&mut self, part: Part, unit: usize, fault: UnitFault, scope: Scope) {
        let Range { start, end } = part.units;
        match scope {
            Scope::Busy => self.busy(part, fault.fault),
            _ if end - start == 1 => {
                self.strike(scope);
                self.conclude(unit, Verdict::Final(Err(fault)));
                self.tally
                    .add(Rung::Isolated, self.runner.packed.unit(unit).len());
            }
            _ if self.is_broken(scope) => {
                self.conclude_all(start..end, &Verdict::Final(Err(fault.fault.into())));
            }
            _ => self.run_again([start..unit, unit..unit + 1, unit + 1..end]),
        }
    }

    /// Settles a part whose commit failed and was rolled back. The error names no unit, so the part
    /// is halved.
    pub(super) fn refused(&mut self, part: Part, failure: Failure) {
        let Failure { fault, scope } = failure;
        let Range { start, end } = part.units;
        match scope {
            Scope::Busy => self.busy(part, fault),
            Scope::Sync => {
                // The log may hold the whole commit; only the next opening of the file will show.
                let unknown = Fault::unknown(fault.message);
                self.conclude_all(start..end, &Verdict::Final(Err(unknown.into())));
            }
            _ if end - start <= 1 || self.is_broken(scope) => {
                self.strike(scope);
                self.conclude_all(start..end, &Verdict::Final(Err(fault.into())));
            }
            _ => {
                let middle = start + (end - start) / 2;
                self.run_again([start..middle, middle..end, end..end]);
            }
        }
    }

    /// Returns a part that another process has blocked to the lane, and then all that is left.
    fn busy(&mut self, part: Part, fault: Fault) {
        self.conclude_all(part.units, &Verdict::RolledBack(fault.clone()));
        self.stop = Some(fault);
    }

    /// Counts a unit that failed alone because of the machine.
    fn strike(&mut self, scope: Scope) {
        self.strikes += u32::from(scope == Scope::Machine);
    }

    /// Returns true if so many units failed because of the machine that the rest is not tried.
    fn is_broken(&self, scope: Scope) -> bool {
        scope == Scope::Machine && self.strikes >= MAX_STRIKES
    }

    /// Puts three parts before all that is left, each isolated.
    fn run_again(&mut self, parts: [Range<usize>; 3]) {
        let parts = parts.into_iter().rev();
        self.todo.extend(parts.map(|units| Part::new(units, true)));
    }
}
