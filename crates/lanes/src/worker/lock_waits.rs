//! Units that wait for another session's lock. Those of each source run on a connection of their
//! own, one after another in the source's order, and each is answered as soon as it has ended. All
//! other units go on.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};
use tokio_util::task::TaskTracker;
use windrow_core::{Fault, Sink, Unit, UnitOutcome};

use super::ledger::Ledger;
use crate::batch::Span;
use crate::connection::{Asker, interrupts};
use crate::lock_wait::LockWaitConnection;
use crate::message::{LockWaitOrder, Signals};

/// The most connections for units that run alone; other units wait for one of them.
const AT_ONCE: usize = 32;

/// The time for which no further connection is opened after the server had no capacity for one.
const FULL: Duration = Duration::from_secs(1);

/// Units of one source that are to run alone, in its order.
#[derive(Debug)]
pub(super) struct LockWaitRun {
    pub(super) source: usize,
    units: VecDeque<(OwedUnit, Unit)>,
}

/// A unit whose outcome is owed to a ticket.
#[derive(Clone, Copy, Debug)]
struct OwedUnit {
    ticket: usize,
    index: usize,
    arrived: Instant,
}

/// A run that has not ended, and the keys that it holds.
#[derive(Debug)]
struct KeyedRun {
    flight: u64,
    hashes: Vec<u64>,
    run: LockWaitRun,
}

/// A connection, as the lane knows it.
#[derive(Debug)]
struct LockWaitMember {
    orders: mpsc::Sender<LockWaitOrder>,
    asker: Asker,
    /// The unit under way, its number, and the rest of its run.
    busy: Option<(OwedUnit, u64, KeyedRun)>,
}

/// All runs of a lane that have not ended, and their connections.
pub(super) struct LockWaits {
    waiting: VecDeque<KeyedRun>,
    members: HashMap<u64, LockWaitMember>,
    /// Idle connections; the last one has the warmest caches.
    idle: Vec<u64>,
    next: u64,
    full_until: Option<Instant>,
    starter: Starter,
}

/// The parts of a new connection.
pub(super) struct Starter {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) signals: Signals,
    pub(super) tasks: TaskTracker,
    pub(super) away_wait: Duration,
}

impl LockWaitRun {
    /// Returns the arrival of the oldest unit.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.units.front().map(|(owed, _)| owed.arrived)
    }

    /// Adds a unit to the run of its source.
    pub(super) fn add(runs: &mut Vec<Self>, span: &Span, offset: usize, unit: Unit) {
        let owed = OwedUnit {
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

impl LockWaits {
    pub(super) fn new(starter: Starter) -> Self {
        Self {
            waiting: VecDeque::new(),
            members: HashMap::new(),
            idle: Vec::new(),
            next: 0,
            full_until: None,
            starter,
        }
    }

    /// Begins a run with units that are to run alone. Claims their keys: otherwise other units that
    /// touch the same rows would meet the same lock, and each batch with them.
    pub(super) fn begin(&mut self, flight: u64, run: LockWaitRun, ledger: &mut Ledger) {
        let mut hashes = Vec::new();
        for (_, unit) in &run.units {
            ledger
                .queue
                .claim(flight, unit, &*self.starter.sink, &mut hashes);
        }
        self.waiting.push_back(KeyedRun {
            flight,
            hashes,
            run,
        });
    }

    /// Starts runs while there may be more connections.
    pub(super) fn start(&mut self, ledger: &mut Ledger) {
        if self.waiting.is_empty() {
            return;
        }
        if self.full_until.is_some_and(|at| at <= Instant::now()) {
            self.full_until = None;
        }
        while let Some(keyed) = self.waiting.pop_front() {
            let Some(connection) = self.idle.pop().or_else(|| self.open_connection()) else {
                self.waiting.push_front(keyed);
                return;
            };
            self.run_next(connection, keyed, ledger);
        }
    }

    /// Opens another connection, if there may be one.
    fn open_connection(&mut self) -> Option<u64> {
        let there = self.members.len();
        if there >= AT_ONCE || (there > 0 && self.full_until.is_some()) {
            return None;
        }
        let id = self.number();
        let (orders, receiver) = mpsc::channel(1);
        let (asker, asked) = interrupts();
        let connection = LockWaitConnection {
            id,
            orders: receiver,
            asked,
            sink: self.starter.sink.clone(),
            signals: self.starter.signals.clone(),
            away_wait: self.starter.away_wait,
        };
        self.starter.tasks.spawn(connection.run());
        let member = LockWaitMember {
            orders,
            asker,
            busy: None,
        };
        self.members.insert(id, member);
        Some(id)
    }

    /// Hands the next unit of a run to a connection; ends the run if none is left.
    fn run_next(&mut self, connection: u64, mut keyed: KeyedRun, ledger: &mut Ledger) {
        drop_abandoned(ledger, &mut keyed.run);
        let Some((owed, unit)) = keyed.run.units.pop_front() else {
            end_run(ledger, &keyed);
            self.idle.push(connection);
            return;
        };
        let number = self.number();
        let others_connected = self.members.len() > 1;
        let Some(member) = self.members.get_mut(&connection) else {
            return;
        };
        let order = LockWaitOrder {
            number,
            unit,
            arrived: owed.arrived,
            policy: ledger.tickets.policy(owed.ticket),
            others_connected,
        };
        match member.orders.try_send(order) {
            Ok(()) => member.busy = Some((owed, number, keyed)),
            Err(failed) => {
                // The task has just closed its connection.
                self.members.remove(&connection);
                let unit = failed.into_inner().unit;
                keyed.run.units.push_front((owed, unit));
                self.waiting.push_front(keyed);
            }
        }
    }

    /// Cancels the first unit of a source that runs alone or waits to, if it arrived before its
    /// client asked.
    pub(super) fn cancel(&mut self, source: usize, asked: Instant, ledger: &mut Ledger) {
        if let Some((asker, owed, number)) = self.busy_with(source) {
            if owed.arrived <= asked {
                asker.ask(number);
            }
            return;
        }
        let Some((at, mut keyed)) = self.take_waiting(source) else {
            return;
        };
        drop_abandoned(ledger, &mut keyed.run);
        let first = keyed.run.units.front();
        if first.is_some_and(|(owed, _)| owed.arrived <= asked)
            && let Some((owed, _)) = keyed.run.units.pop_front()
        {
            fail(ledger, owed, &Fault::called_back());
        }
        self.put_back(at, keyed, ledger);
    }

    /// Drops the units of a source whose client no longer waits for them.
    pub(super) fn drop_abandoned(&mut self, source: usize, ledger: &mut Ledger) {
        if let Some((asker, owed, number)) = self.busy_with(source) {
            if ledger.tickets.is_abandoned(owed.ticket) {
                asker.ask(number);
            }
            return;
        }
        if let Some((at, mut keyed)) = self.take_waiting(source) {
            drop_abandoned(ledger, &mut keyed.run);
            self.put_back(at, keyed, ledger);
        }
    }

    /// Cancels all units of a source that wait for a lock: its client has closed its side of the
    /// connection.
    pub(super) fn close(&mut self, source: usize, ledger: &mut Ledger) {
        let mut given_up = VecDeque::new();
        for member in self.members.values_mut() {
            if let Some((_, number, keyed)) = &mut member.busy
                && keyed.run.source == source
            {
                member.asker.ask(*number);
                given_up.append(&mut keyed.run.units);
            }
        }
        if let Some((_, mut keyed)) = self.take_waiting(source) {
            given_up.append(&mut keyed.run.units);
            end_run(ledger, &keyed);
        }
        for (owed, _) in given_up {
            fail(ledger, owed, &Fault::called_back());
        }
    }

    /// Fails the runs that have waited too long for a connection; returns the arrival of the oldest
    /// one kept.
    pub(super) fn expire(
        &mut self,
        latest: Instant,
        fault: &Fault,
        ledger: &mut Ledger,
    ) -> Option<Instant> {
        let mut oldest: Option<Instant> = None;
        for _ in 0..self.waiting.len() {
            let Some(mut keyed) = self.waiting.pop_front() else {
                break;
            };
            let is_late = |owed: &OwedUnit, ledger: &Ledger| {
                owed.arrived <= latest && !ledger.tickets.policy(owed.ticket).is_persistent()
            };
            while let Some((owed, _)) = keyed.run.units.front().filter(|u| is_late(&u.0, ledger)) {
                fail(ledger, *owed, fault);
                keyed.run.units.pop_front();
            }
            let first = keyed.run.units.front().map(|(owed, _)| owed.arrived);
            oldest = [oldest, first].into_iter().flatten().min();
            if first.is_some() {
                self.waiting.push_back(keyed);
            } else {
                end_run(ledger, &keyed);
            }
        }
        oldest
    }

    fn put_back(&mut self, at: usize, keyed: KeyedRun, ledger: &mut Ledger) {
        if keyed.run.units.is_empty() {
            end_run(ledger, &keyed);
        } else {
            self.waiting.insert(at, keyed);
        }
    }

    /// Answers a unit that has ended, and starts the next one of its source.
    pub(super) fn ended(&mut self, connection: u64, outcome: UnitOutcome, ledger: &mut Ledger) {
        let member = self.members.get_mut(&connection);
        let Some((owed, _, keyed)) = member.and_then(|member| member.busy.take()) else {
            return;
        };
        ledger.count.outcome(&outcome);
        if let Some(trace) = ledger.tickets.trace(owed.ticket) {
            trace.waited_for_lock();
        }
        ledger.tickets.tell(owed.ticket, owed.index, outcome);
        self.run_next(connection, keyed, ledger);
    }

    /// Notes that the server had no capacity for a connection: the unit waits for one of the open
    /// ones.
    pub(super) fn has_no_room(
        &mut self,
        connection: u64,
        order: LockWaitOrder,
        ledger: &mut Ledger,
    ) {
        let Some(member) = self.members.remove(&connection) else {
            return;
        };
        if let Some((owed, number, mut keyed)) = member.busy {
            if member.asker.has_asked(number) {
                fail(ledger, owed, &Fault::called_back());
            } else {
                keyed.run.units.push_front((owed, order.unit));
            }
            self.put_back(0, keyed, ledger);
        }
        self.full_until = Some(Instant::now() + FULL);
    }

    /// Takes out the run of a source that has not begun; returns also its place in the list.
    fn take_waiting(&mut self, source: usize) -> Option<(usize, KeyedRun)> {
        let of_source = |keyed: &KeyedRun| keyed.run.source == source;
        let at = self.waiting.iter().position(of_source)?;
        Some((at, self.waiting.remove(at)?))
    }

    /// Returns the connection that executes a unit of the source, that unit, and its number.
    fn busy_with(&self, source: usize) -> Option<(&Asker, OwedUnit, u64)> {
        self.members.values().find_map(|member| {
            let (owed, number, keyed) = member.busy.as_ref()?;
            (keyed.run.source == source).then_some((&member.asker, *owed, *number))
        })
    }

    /// True while units run alone or wait to: then their keys must be respected.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.idle.len() < self.members.len()
    }

    /// True if units wait for a connection.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the time at which to try another connection after the server had no capacity.
    pub(super) fn asks_again_at(&self) -> Option<Instant> {
        self.full_until.filter(|_| !self.waiting.is_empty())
    }

    /// Returns a number that no unit and no connection here has had.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn fail(ledger: &mut Ledger, owed: OwedUnit, fault: &Fault) {
    ledger.count.fault(fault.class, 1);
    ledger.tickets.fail(owed.ticket, owed.index, 1, fault);
}

fn drop_abandoned(ledger: &mut Ledger, run: &mut LockWaitRun) {
    let units = &mut run.units;
    units.retain(|(owed, _)| !ledger.forgo_abandoned(owed.ticket));
}

fn end_run(ledger: &mut Ledger, keyed: &KeyedRun) {
    ledger.queue.release_keys(keyed.flight, &keyed.hashes);
    ledger.queue.release_source(keyed.run.source);
}
