//! Units that wait for a lock held by somebody else: each source's on a connection of its own, while all others go on.

use std::collections::{HashMap, VecDeque};

use windrow_core::{Fault, Unit, UnitOutcome};

use super::Worker;
use crate::batch::Span;
use crate::solo::Solo;

/// How many connections there are at most for units that run alone; more of them wait for one.
const AT_ONCE: usize = 32;

/// Units of one source that are to run alone, in its order.
#[derive(Debug)]
pub(super) struct AloneRun {
    pub(super) source: usize,
    /// The ticket of each, and its index there.
    owed: Vec<(usize, usize)>,
    units: Vec<Unit>,
}

/// What a lane knows of a run that waits or is under way.
#[derive(Debug)]
struct Apart {
    source: usize,
    owed: Vec<(usize, usize)>,
    hashes: Vec<u64>,
}

/// A run that has not begun, and its flight and keys.
type Waiting = (u64, AloneRun, Vec<u64>);

#[derive(Debug)]
pub(super) struct AloneDesk {
    waiting: VecDeque<Waiting>,
    running: HashMap<u64, Apart>,
}

impl AloneRun {
    /// Adds a unit to its source's run.
    pub(super) fn add(runs: &mut Vec<Self>, span: &Span, offset: usize, unit: Unit) {
        let owed = (span.ticket, span.first + offset);
        match runs.iter_mut().find(|run| run.source == span.source) {
            Some(run) => {
                run.owed.push(owed);
                run.units.push(unit);
            }
            None => runs.push(Self {
                source: span.source,
                owed: vec![owed],
                units: vec![unit],
            }),
        }
    }
}

impl AloneDesk {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            running: HashMap::new(),
        }
    }

    /// Takes out the run of a source that has not begun, and tells its place.
    fn take_waiting(&mut self, source: usize) -> Option<(usize, Waiting)> {
        let of_source = |(_, run, _): &Waiting| run.source == source;
        let at = self.waiting.iter().position(of_source)?;
        Some((at, self.waiting.remove(at)?))
    }

    /// True while units run alone, or are to: then their keys are to be respected.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || !self.running.is_empty()
    }
}

impl Worker {
    /// Takes units out of the normal course. Others that touch the same rows wait for them, or they would all run into
    /// the same lock, and each batch with them.
    pub(super) fn set_apart(&mut self, run: AloneRun) {
        let flight = self.next_flight;
        self.next_flight += 1;
        let mut hashes = Vec::new();
        for unit in &run.units {
            self.queue.claim(flight, unit, &*self.sink, &mut hashes);
        }
        self.alone.waiting.push_back((flight, run, hashes));
    }

    /// Starts runs, as far as there may be more.
    pub(super) fn depart_alone(&mut self) {
        while self.alone.running.len() < AT_ONCE
            && let Some((flight, mut run, hashes)) = self.alone.waiting.pop_front()
        {
            self.drop_abandoned(&mut run);
            if run.units.is_empty() {
                self.queue.release_keys(flight, &hashes);
                self.queue.release_source(run.source);
                continue;
            }
            let solo = Solo {
                flight,
                units: run.units,
                sink: self.sink.clone(),
                signals: self.signals.clone(),
                away_wait: self.limits.away_wait,
            };
            self.tasks.spawn(solo.run());
            let apart = Apart {
                source: run.source,
                owed: run.owed,
                hashes,
            };
            self.alone.running.insert(flight, apart);
        }
    }

    /// Takes the units of a source out that wait to run alone and whose client has left, and with a fault the first one of
    /// those that stay, whose client is told.
    pub(super) fn cancel_alone(&mut self, source: usize, fault: Option<&Fault>) {
        let Some((at, (flight, mut run, hashes))) = self.alone.take_waiting(source) else {
            return;
        };
        self.drop_abandoned(&mut run);
        if let Some(fault) = fault
            && !run.units.is_empty()
        {
            let (ticket, index) = run.owed.remove(0);
            drop(run.units.remove(0));
            self.count.fault(fault.class, 1);
            self.tickets.fail(ticket, index, 1, fault);
        }
        if run.units.is_empty() {
            self.queue.release_keys(flight, &hashes);
            self.queue.release_source(source);
        } else {
            self.alone.waiting.insert(at, (flight, run, hashes));
        }
    }

    fn drop_abandoned(&mut self, run: &mut AloneRun) {
        let owed = std::mem::take(&mut run.owed);
        let units = std::mem::take(&mut run.units);
        for (owed, unit) in owed.into_iter().zip(units) {
            if self.tickets.is_abandoned(owed.0) {
                self.tickets.forgo(owed.0, 1);
                self.meters.abandoned.inc();
            } else {
                run.owed.push(owed);
                run.units.push(unit);
            }
        }
    }

    /// A run has ended.
    pub(super) fn alone_ended(&mut self, flight: u64, outcomes: Vec<UnitOutcome>) {
        let Some(apart) = self.alone.running.remove(&flight) else {
            return;
        };
        for ((ticket, index), outcome) in apart.owed.into_iter().zip(outcomes) {
            self.count.outcome(&outcome);
            self.tickets.tell(ticket, index, outcome);
        }
        self.queue.release_keys(flight, &apart.hashes);
        self.queue.release_source(apart.source);
    }
}
