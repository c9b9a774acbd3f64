//! Units that wait for a lock of another session: each source's on a connection of its own, while
//! all others go on.
//!
//! A source's units run one after another, in its order, and each is answered as soon as it has
//! ended.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};
use windrow_core::{Fault, UnitOutcome, Work};

use super::lock_waits::{KeyedRun, LockWaitRun, Member, Owed};
use super::state::Worker;
use crate::interrupt;
use crate::lock_wait::LockWaitConnection;
use crate::message::LockWaitOrder;

/// Connections for units that run alone, at most; other units wait for one.
const AT_ONCE: usize = 32;

/// After the server had no room for a connection more: how long those that are there are to do.
const FULL: Duration = Duration::from_secs(1);

impl<W: Work> Worker<W> {
    /// Takes units out of the normal course. Others that touch the same rows wait for them, or they
    /// would all run into the same lock, and each batch with them.
    pub(super) fn begin_lock_wait(&mut self, run: LockWaitRun<W>) {
        let flight = self.next_flight;
        self.next_flight += 1;
        let mut hashes = Vec::new();
        for (_, unit) in &run.units {
            self.queue.claim(flight, unit, &*self.sink, &mut hashes);
        }
        self.lock_waits.waiting.push_back(KeyedRun {
            flight,
            hashes,
            run,
        });
    }

    /// Starts runs, as far as there may be more.
    pub(super) fn start_lock_waits(&mut self) {
        if self.lock_waits.waiting.is_empty() {
            return;
        }
        if self
            .lock_waits
            .full_until
            .is_some_and(|at| at <= Instant::now())
        {
            self.lock_waits.full_until = None;
        }
        while let Some(keyed) = self.lock_waits.waiting.pop_front() {
            let Some(connection) = self
                .lock_waits
                .idle
                .pop()
                .or_else(|| self.open_lock_wait_connection())
            else {
                self.lock_waits.waiting.push_front(keyed);
                return;
            };
            self.run_next_lock_wait(connection, keyed);
        }
    }

    /// A connection more, if there may be one.
    fn open_lock_wait_connection(&mut self) -> Option<u64> {
        let waits = &mut self.lock_waits;
        let there = waits.members.len();
        if there >= AT_ONCE || (there > 0 && waits.full_until.is_some()) {
            return None;
        }
        let id = waits.number();
        let (orders, receiver) = mpsc::channel(1);
        let (asker, asked) = interrupt::channel();
        let connection = LockWaitConnection {
            id,
            orders: receiver,
            asked,
            sink: self.sink.clone(),
            signals: self.signals.clone(),
            away_wait: self.limits.away_wait,
        };
        self.tasks.spawn(connection.run());
        let member = Member {
            orders,
            asker,
            busy: None,
        };
        waits.members.insert(id, member);
        Some(id)
    }

    /// Hands the next unit of a run to a connection; a run that has none left has ended.
    fn run_next_lock_wait(&mut self, connection: u64, mut keyed: KeyedRun<W>) {
        self.drop_abandoned(&mut keyed.run);
        let Some((owed, unit)) = keyed.run.units.pop_front() else {
            self.end_run(&keyed);
            self.lock_waits.idle.push(connection);
            return;
        };
        let number = self.lock_waits.number();
        let others_connected = self.lock_waits.members.len() > 1;
        let Some(member) = self.lock_waits.members.get_mut(&connection) else {
            return;
        };
        let order = LockWaitOrder {
            number,
            unit,
            arrived: owed.arrived,
            policy: self.tickets.policy(owed.ticket),
            others_connected,
        };
        match member.orders.try_send(order) {
            Ok(()) => member.busy = Some((owed, number, keyed)),
            Err(failed) => {
                // It has just closed its connection.
                self.lock_waits.members.remove(&connection);
                let unit = failed.into_inner().unit;
                keyed.run.units.push_front((owed, unit));
                self.lock_waits.waiting.push_front(keyed);
            }
        }
    }

    /// Gives up the first unit of a source that runs alone or waits to, whose client was asking at
    /// that time.
    pub(super) fn cancel_lock_wait(&mut self, source: usize, asked: Instant) {
        if let Some((asker, owed, number)) = self.lock_waits.busy_with(source) {
            if owed.arrived <= asked {
                asker.ask(number);
            }
            return;
        }
        let Some((at, mut keyed)) = self.lock_waits.take_waiting(source) else {
            return;
        };
        self.drop_abandoned(&mut keyed.run);
        let first = keyed.run.units.front();
        if first.is_some_and(|(owed, _)| owed.arrived <= asked)
            && let Some((owed, _)) = keyed.run.units.pop_front()
        {
            self.fail_lock_wait(owed, &Fault::called_back());
        }
        self.put_back_waiting(at, keyed);
    }

    /// A source's client waits no longer for some of its units: those are given up.
    pub(super) fn drop_abandoned_lock_waits(&mut self, source: usize) {
        if let Some((asker, owed, number)) = self.lock_waits.busy_with(source) {
            if self.tickets.is_abandoned(owed.ticket) {
                asker.ask(number);
            }
            return;
        }
        if let Some((at, mut keyed)) = self.lock_waits.take_waiting(source) {
            self.drop_abandoned(&mut keyed.run);
            self.put_back_waiting(at, keyed);
        }
    }

    /// A source's client has closed its side: none of its units waits for a lock any longer.
    pub(super) fn close_lock_waits(&mut self, source: usize) {
        let mut given_up = VecDeque::new();
        for member in self.lock_waits.members.values_mut() {
            if let Some((_, number, keyed)) = &mut member.busy
                && keyed.run.source == source
            {
                member.asker.ask(*number);
                given_up.append(&mut keyed.run.units);
            }
        }
        if let Some((_, mut keyed)) = self.lock_waits.take_waiting(source) {
            given_up.append(&mut keyed.run.units);
            self.end_run(&keyed);
        }
        for (owed, _) in given_up {
            self.fail_lock_wait(owed, &Fault::called_back());
        }
    }

    /// Fails those that have waited too long for a connection; gives the arrival of the oldest that
    /// stays.
    pub(super) fn expire_lock_waits(&mut self, latest: Instant, fault: &Fault) -> Option<Instant> {
        let mut oldest: Option<Instant> = None;
        for _ in 0..self.lock_waits.waiting.len() {
            let Some(mut keyed) = self.lock_waits.waiting.pop_front() else {
                break;
            };
            while let Some((owed, _)) = keyed.run.units.front().filter(|u| u.0.arrived <= latest) {
                self.fail_lock_wait(*owed, fault);
                keyed.run.units.pop_front();
            }
            let first = keyed.run.units.front().map(|(owed, _)| owed.arrived);
            oldest = [oldest, first].into_iter().flatten().min();
            if first.is_some() {
                self.lock_waits.waiting.push_back(keyed);
            } else {
                self.end_run(&keyed);
            }
        }
        oldest
    }

    fn fail_lock_wait(&mut self, owed: Owed, fault: &Fault) {
        self.count.fault(fault.class, 1);
        self.tickets.fail(owed.ticket, owed.index, 1, fault);
    }

    fn put_back_waiting(&mut self, at: usize, keyed: KeyedRun<W>) {
        if keyed.run.units.is_empty() {
            self.end_run(&keyed);
        } else {
            self.lock_waits.waiting.insert(at, keyed);
        }
    }

    fn drop_abandoned(&mut self, run: &mut LockWaitRun<W>) {
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
    pub(super) fn lock_wait_ended(&mut self, connection: u64, outcome: UnitOutcome<W::Done>) {
        let member = self.lock_waits.members.get_mut(&connection);
        let Some((owed, _, keyed)) = member.and_then(|member| member.busy.take()) else {
            return;
        };
        self.count.outcome(&outcome);
        if let Some(trace) = self.tickets.trace(owed.ticket) {
            trace.waited_for_lock();
        }
        self.tickets.tell(owed.ticket, owed.index, outcome);
        self.run_next_lock_wait(connection, keyed);
    }

    /// There was no room for a connection: the unit waits for one of those that are there.
    pub(super) fn lock_wait_without_room(&mut self, connection: u64, order: LockWaitOrder<W>) {
        let Some(member) = self.lock_waits.members.remove(&connection) else {
            return;
        };
        if let Some((owed, number, mut keyed)) = member.busy {
            if member.asker.has_asked(number) {
                self.fail_lock_wait(owed, &Fault::called_back());
            } else {
                keyed.run.units.push_front((owed, order.unit));
            }
            self.put_back_waiting(0, keyed);
        }
        self.lock_waits.full_until = Some(Instant::now() + FULL);
    }

    fn end_run(&mut self, keyed: &KeyedRun<W>) {
        self.queue.release_keys(keyed.flight, &keyed.hashes);
        self.queue.release_source(keyed.run.source);
    }
}
