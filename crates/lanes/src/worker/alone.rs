//! Units that wait for a lock held by somebody else: each source's on a connection of its own,
//! while all others go on.
//!
//! A source's units run one after another, in its order, and each is answered as soon as it has
//! ended.

use std::collections::{HashMap, VecDeque};

use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};
use windrow_core::{Fault, Unit, UnitOutcome};

use super::Worker;
use crate::batch::Span;
use crate::interrupt::{self, Asker};
use crate::solo::{Solo, SoloOrder};

/// How many connections there are at most for units that run alone; more of them wait for one.
const AT_ONCE: usize = 32;

/// After the server had no room for a connection more: how long those that are there are to do.
const FULL: Duration = Duration::from_secs(1);

/// Units of one source that are to run alone, in its order.
#[derive(Debug)]
pub(super) struct AloneRun {
    pub(super) source: usize,
    units: VecDeque<(Owed, Unit)>,
}

/// Who is waiting for a unit's outcome.
#[derive(Clone, Copy, Debug)]
struct Owed {
    ticket: usize,
    index: usize,
    arrived: Instant,
}

/// A run that has not ended, and the keys that it holds.
#[derive(Debug)]
struct Apart {
    flight: u64,
    hashes: Vec<u64>,
    run: AloneRun,
}

/// A connection, as the lane knows it.
#[derive(Debug)]
struct Member {
    orders: mpsc::Sender<SoloOrder>,
    asker: Asker,
    /// The unit that it executes, its number, and those that follow.
    busy: Option<(Owed, u64, Apart)>,
}

#[derive(Debug, Default)]
pub(super) struct AloneDesk {
    waiting: VecDeque<Apart>,
    members: HashMap<u64, Member>,
    /// Connections that have nothing to do; the last one is the warmest.
    idle: Vec<u64>,
    next: u64,
    full_until: Option<Instant>,
}

impl AloneRun {
    /// When the first of them arrived.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.units.front().map(|(owed, _)| owed.arrived)
    }

    /// Adds a unit to its source's run.
    pub(super) fn add(runs: &mut Vec<Self>, span: &Span, offset: usize, unit: Unit) {
        let owed = Owed {
            ticket: span.ticket,
            index: span.first + offset,
            arrived: span.arrived,
        };
        match runs.iter_mut().find(|run| run.source == span.source) {
            Some(run) => run.units.push_back((owed, unit)),
            None => runs.push(Self {
                source: span.source,
                units: VecDeque::from([(owed, unit)]),
            }),
        }
    }
}

impl AloneDesk {
    /// Takes out the run of a source that has not begun, and tells its place.
    fn take_waiting(&mut self, source: usize) -> Option<(usize, Apart)> {
        let of_source = |apart: &Apart| apart.run.source == source;
        let at = self.waiting.iter().position(of_source)?;
        Some((at, self.waiting.remove(at)?))
    }

    /// The connection that is busy with a source's units, and the one that it executes.
    fn busy_with(&self, source: usize) -> Option<(&Asker, Owed, u64)> {
        self.members.values().find_map(|member| {
            let (owed, number, apart) = member.busy.as_ref()?;
            (apart.run.source == source).then_some((&member.asker, *owed, *number))
        })
    }

    /// True while units run alone, or are to: then their keys are to be respected.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.idle.len() < self.members.len()
    }

    /// True if units wait for a connection.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When a server that had no room is to be asked once more.
    pub(super) fn asks_again_at(&self) -> Option<Instant> {
        self.full_until.filter(|_| !self.waiting.is_empty())
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Worker {
    /// Takes units out of the normal course. Others that touch the same rows wait for them, or they
    /// would all run into the same lock, and each batch with them.
    pub(super) fn set_apart(&mut self, run: AloneRun) {
        let flight = self.next_flight;
        self.next_flight += 1;
        let mut hashes = Vec::new();
        for (_, unit) in &run.units {
            self.queue.claim(flight, unit, &*self.sink, &mut hashes);
        }
        self.alone.waiting.push_back(Apart {
            flight,
            hashes,
            run,
        });
    }

    /// Starts runs, as far as there may be more.
    pub(super) fn depart_alone(&mut self) {
        if self.alone.waiting.is_empty() {
            return;
        }
        if self.alone.full_until.is_some_and(|at| at <= Instant::now()) {
            self.alone.full_until = None;
        }
        while let Some(apart) = self.alone.waiting.pop_front() {
            let Some(solo) = self.alone.idle.pop().or_else(|| self.enlist_alone()) else {
                self.alone.waiting.push_front(apart);
                return;
            };
            self.go_on_alone(solo, apart);
        }
    }

    /// A connection more, if there may be one.
    fn enlist_alone(&mut self) -> Option<u64> {
        let desk = &mut self.alone;
        let there = desk.members.len();
        if there >= AT_ONCE || (there > 0 && desk.full_until.is_some()) {
            return None;
        }
        let id = desk.number();
        let (orders, receiver) = mpsc::channel(1);
        let (asker, asked) = interrupt::line();
        let solo = Solo {
            id,
            orders: receiver,
            asked,
            sink: self.sink.clone(),
            signals: self.signals.clone(),
            away_wait: self.limits.away_wait,
        };
        self.tasks.spawn(solo.run());
        let member = Member {
            orders,
            asker,
            busy: None,
        };
        desk.members.insert(id, member);
        Some(id)
    }

    /// Hands the next unit of a run to a connection; a run that has none left has ended.
    fn go_on_alone(&mut self, solo: u64, mut apart: Apart) {
        self.drop_abandoned(&mut apart.run);
        let Some((owed, unit)) = apart.run.units.pop_front() else {
            self.end_run(&apart);
            self.alone.idle.push(solo);
            return;
        };
        let number = self.alone.number();
        let in_company = self.alone.members.len() > 1;
        let Some(member) = self.alone.members.get_mut(&solo) else {
            return;
        };
        let order = SoloOrder {
            number,
            unit,
            arrived: owed.arrived,
            in_company,
        };
        match member.orders.try_send(order) {
            Ok(()) => member.busy = Some((owed, number, apart)),
            Err(failed) => {
                // It has just closed its connection.
                self.alone.members.remove(&solo);
                let unit = failed.into_inner().unit;
                apart.run.units.push_front((owed, unit));
                self.alone.waiting.push_front(apart);
            }
        }
    }

    /// Gives up the first unit of a source that runs alone or waits to, whose client was asking at
    /// that time.
    pub(super) fn call_back_alone(&mut self, source: usize, asked: Instant) {
        if let Some((asker, owed, number)) = self.alone.busy_with(source) {
            if owed.arrived <= asked {
                asker.ask(number);
            }
            return;
        }
        let Some((at, mut apart)) = self.alone.take_waiting(source) else {
            return;
        };
        self.drop_abandoned(&mut apart.run);
        let first = apart.run.units.front();
        if first.is_some_and(|(owed, _)| owed.arrived <= asked)
            && let Some((owed, _)) = apart.run.units.pop_front()
        {
            self.fail_alone(owed, &Fault::called_back());
        }
        self.put_back_waiting(at, apart);
    }

    /// A source's client waits no longer for some of its units: those are given up.
    pub(super) fn forgo_alone(&mut self, source: usize) {
        if let Some((asker, owed, number)) = self.alone.busy_with(source) {
            if self.tickets.is_abandoned(owed.ticket) {
                asker.ask(number);
            }
            return;
        }
        if let Some((at, mut apart)) = self.alone.take_waiting(source) {
            self.drop_abandoned(&mut apart.run);
            self.put_back_waiting(at, apart);
        }
    }

    /// A source's client has closed its side: none of its units waits for a lock any longer.
    pub(super) fn close_alone(&mut self, source: usize) {
        let mut given_up = VecDeque::new();
        for member in self.alone.members.values_mut() {
            if let Some((_, number, apart)) = &mut member.busy
                && apart.run.source == source
            {
                member.asker.ask(*number);
                given_up.append(&mut apart.run.units);
            }
        }
        if let Some((_, mut apart)) = self.alone.take_waiting(source) {
            given_up.append(&mut apart.run.units);
            self.end_run(&apart);
        }
        for (owed, _) in given_up {
            self.fail_alone(owed, &Fault::called_back());
        }
    }

    /// Fails those that have waited too long for a connection; gives the arrival of the oldest that
    /// stays.
    pub(super) fn expire_alone(&mut self, latest: Instant, fault: &Fault) -> Option<Instant> {
        let mut oldest: Option<Instant> = None;
        for _ in 0..self.alone.waiting.len() {
            let Some(mut apart) = self.alone.waiting.pop_front() else {
                break;
            };
            while let Some((owed, _)) = apart.run.units.front().filter(|u| u.0.arrived <= latest) {
                self.fail_alone(*owed, fault);
                apart.run.units.pop_front();
            }
            let first = apart.run.units.front().map(|(owed, _)| owed.arrived);
            oldest = [oldest, first].into_iter().flatten().min();
            if first.is_some() {
                self.alone.waiting.push_back(apart);
            } else {
                self.end_run(&apart);
            }
        }
        oldest
    }

    fn fail_alone(&mut self, owed: Owed, fault: &Fault) {
        self.count.fault(fault.class, 1);
        self.tickets.fail(owed.ticket, owed.index, 1, fault);
    }

    fn put_back_waiting(&mut self, at: usize, apart: Apart) {
        if apart.run.units.is_empty() {
            self.end_run(&apart);
        } else {
            self.alone.waiting.insert(at, apart);
        }
    }

    fn drop_abandoned(&mut self, run: &mut AloneRun) {
        let (tickets, abandoned) = (&mut self.tickets, &self.meters.abandoned);
        run.units.retain(|(owed, _)| {
            let left = tickets.is_abandoned(owed.ticket);
            if left {
                tickets.forgo(owed.ticket, 1);
                abandoned.inc();
            }
            !left
        });
    }

    /// A unit has ended: the next one of its source follows it.
    pub(super) fn alone_ended(&mut self, solo: u64, outcome: UnitOutcome) {
        let member = self.alone.members.get_mut(&solo);
        let Some((owed, _, apart)) = member.and_then(|member| member.busy.take()) else {
            return;
        };
        self.count.outcome(&outcome);
        self.tickets.tell(owed.ticket, owed.index, outcome);
        self.go_on_alone(solo, apart);
    }

    /// There was no room for a connection: the unit waits for one of those that are there.
    pub(super) fn alone_without_room(&mut self, solo: u64, order: SoloOrder) {
        let Some(member) = self.alone.members.remove(&solo) else {
            return;
        };
        if let Some((owed, number, mut apart)) = member.busy {
            if member.asker.has_asked(number) {
                self.fail_alone(owed, &Fault::called_back());
            } else {
                apart.run.units.push_front((owed, order.unit));
            }
            self.put_back_waiting(0, apart);
        }
        self.alone.full_until = Some(Instant::now() + FULL);
    }

    fn end_run(&mut self, apart: &Apart) {
        self.queue.release_keys(apart.flight, &apart.hashes);
        self.queue.release_source(apart.run.source);
    }
}
