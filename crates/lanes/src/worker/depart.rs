//! Sends batches.
//!
//! Units that delay others leave in flights of their own: units of sources that fail again and
//! again, and units with long answers. A database needs several round trips to isolate a failing
//! unit, and a flight with long answers lands when the last of them has arrived. While there are
//! other units, at most half as many such flights leave as pace allows for others. If only one
//! flight can be under way, the two kinds take turns. Pace learns nothing from flights apart.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::{Fault, Report, Sink, Verdict};

use super::Worker;
use super::ledger::Ledger;
use crate::batch::Batch;
use crate::connections::Flight;
use crate::message::LandedBatch;
use crate::queue::Room;

/// The bytes from which on a flight is large: others leave beside it as if it were overdue.
const LARGE: usize = 64 << 10;

/// The number of flights that may leave beside overdue or large ones: enough for a few rows that
/// wait for locks, and too few to crowd a database that has stalled.
const BESIDE: usize = 4;

/// The longest delay of the next flight apart if others cannot leave beside it. It is delayed for
/// as long as the last one took.
const LONGEST_TURN: Duration = Duration::from_millis(250);

/// The most rows of a flight apart if others cannot leave beside it.
const ROWS_ALONE: usize = 64;

/// The most rows of a batch whose keys are claimed although no other flight is allowed beside it.
const FEW: usize = 32;

impl Worker {
    /// Sends all batches that may leave now. While fewer flights are under way than pace allows, a
    /// batch leaves at once.
    pub(super) fn depart(&mut self) {
        if self.ledger.queue.wakes_at().is_some() {
            self.ledger.queue.wake(Instant::now());
        }
        self.availability.expire(&mut self.ledger, self.open);
        let timeout = self.sink.statement_timeout();
        self.late
            .answer(timeout, &mut self.ledger, &mut self.lock_waits);
        self.close_idle();
        self.lock_waits.start(&mut self.ledger);
        (self.held_until, self.overdue_at) = (None, None);
        let now = Instant::now();
        self.look_apart(now);
        // First, because others may leave at any time, while these have to wait for their turn.
        self.send_apart(now);
        self.crowded = self.send_all();
        // Again, for units that were found to delay others while batches formed.
        self.send_apart(now);
    }

    /// Sends the batches that do not travel apart. Returns true if units have to wait for a
    /// landing: no further flight may leave, or earlier units of their source are under way.
    fn send_all(&mut self) -> bool {
        while self.ledger.queue.is_ready() {
            let (mut flying, mut apart, mut keyed) = (0, 0, true);
            for flight in self.connections.flights() {
                let kind = match flight.is_apart {
                    true => &mut apart,
                    false => &mut flying,
                };
                *kind += 1;
                keyed &= flight.keyed;
            }
            // A flight whose keys are unknown has the lane to itself.
            if !keyed {
                return true;
            }
            let now = Instant::now();
            let mut limit = self.pace.setting().flights;
            if flying >= limit {
                limit = (limit + self.late(flying, now).min(BESIDE)).min(self.most_flights());
            }
            if flying >= limit || flying + apart >= self.most_flights() {
                return true;
            }
            if self.is_held_back(now) {
                break;
            }
            let Some(connection) = self.connections.idle() else {
                self.open_connection(limit + apart, now);
                break;
            };
            let keyed = limit > 1
                || flying + apart > 0
                || self.lock_waits.is_busy()
                || self.may_be_late()
                || self.may_fly_apart(now);
            if !self.send_off(connection, keyed, flying + 1, now) {
                break;
            }
        }
        self.ledger.queue.totals().units > 0 && self.held_until.is_none() && self.are_all_flying()
    }

    /// Opens a connection if there are fewer than `limit` and one more may be opened.
    pub(super) fn open_connection(&mut self, limit: usize, now: Instant) {
        if self.connections.wants_more(limit, now) {
            self.connections.open(
                &self.sink,
                &self.signals,
                &self.tasks,
                &self.ledger.meters.failures,
            );
        }
    }

    /// True while as many flights are under way as pace allows.
    fn are_all_flying(&self) -> bool {
        let flights = self.connections.flights();
        let flying = flights.filter(|flight| !flight.is_apart).count();
        flying >= self.pace.setting().flights
    }

    /// Returns the number of flights under way that are overdue or large, and notes when the next
    /// one becomes overdue.
    fn late(&mut self, flying: usize, now: Instant) -> usize {
        let mut late = 0;
        let mut next: Option<Instant> = None;
        let allowed = self.usual.allowed();
        let flights = self.connections.flights();
        for flight in flights.filter(|flight| !flight.is_apart) {
            let departed = flight.manifest.departed;
            match departed.zip(allowed).map(|(at, allowed)| at + allowed) {
                Some(due) if due <= now => late += 1,
                _ if is_large(flight) => late += 1,
                due => next = [next, due].into_iter().flatten().min(),
            }
        }
        self.overdue_at = next.filter(|_| flying < self.most_flights());
        late
    }

    /// Returns the most flights that the database and the limits allow.
    pub(super) fn most_flights(&self) -> usize {
        self.pace.bounds().flights
    }

    /// True if others should be able to leave beside the next batch should it be overdue. Claiming
    /// the keys of a large batch costs more than that is worth: under high load all flights are
    /// large and take equally long.
    fn may_be_late(&self) -> bool {
        self.most_flights() > 1 && self.ledger.queue.totals().rows <= FEW
    }

    /// Forms a batch and hands it to a connection. Returns false if nothing can leave.
    fn send_off(&mut self, connection: u64, keyed: bool, flying: usize, now: Instant) -> bool {
        let id = self.next_flight;
        let sink: Option<&dyn Sink> = if keyed { Some(&*self.sink) } else { None };
        let room = self.room(flying - 1);
        let Ledger { queue, tickets, .. } = &mut self.ledger;
        let formed = queue.form(room, id, tickets, sink);
        self.held_since = None;
        let Some(batch) = formed else {
            return false;
        };
        self.launch(connection, batch, (keyed, false), flying, now);
        true
    }

    /// Hands a batch to a connection.
    pub(super) fn launch(
        &mut self,
        connection: u64,
        batch: Batch,
        (keyed, is_apart): (bool, bool),
        flying: usize,
        now: Instant,
    ) {
        let Batch {
            units,
            mut manifest,
        } = batch;
        let id = self.next_flight;
        self.next_flight += 1;
        manifest.departed = Some(now);
        for span in &manifest.spans {
            let waited = now.saturating_duration_since(span.arrived);
            self.ledger
                .meters
                .queue_seconds
                .observe(waited.as_secs_f64());
        }
        let flight = Flight {
            id,
            manifest,
            keyed,
            is_apart,
            flying,
            called_back: Vec::new(),
            waited: self.crowded || (self.pace.setting().gather && self.gather.expects()),
        };
        if let Err(left) = self.connections.send(connection, units, flight) {
            let (units, flight) = *left;
            let gone = Fault::unavailable("the connection's task has ended; nothing was written");
            let report = Report::broken(units.len(), &Verdict::RolledBack(gone));
            let landed = LandedBatch {
                units,
                report,
                replayed: 0,
            };
            self.unload(flight, landed);
        }
    }

    /// True while units are held back so that others can join them: those of clients that were just
    /// answered, if that was measured to pay, or because `max_wait` asks for it.
    fn is_held_back(&mut self, now: Instant) -> bool {
        let gather = self.pace.setting().gather;
        if (self.limits.max_wait.is_zero() && !gather)
            || self.ledger.queue.has_retries()
            || !self.open
        {
            return false;
        }
        let (room, totals) = (self.room(0), self.ledger.queue.totals());
        if totals.rows >= room.rows || totals.bytes >= room.bytes {
            return false;
        }
        let at = now.saturating_duration_since(self.started);
        if gather && let Some(until) = self.gather.holds(at) {
            self.held_until = Some(self.started + until);
            return true;
        }
        if self.limits.max_wait.is_zero() {
            return false;
        }
        let until = *self.held_since.get_or_insert(now) + self.limits.max_wait;
        self.held_until = (now < until).then_some(until);
        now < until
    }

    /// Starts looking for idle connections, because another one was opened.
    pub(super) fn look_for_idle(&mut self, now: Instant) {
        if self.look_for_idle.is_none() {
            self.look_for_idle = now.checked_add(self.limits.idle_close);
        }
    }

    /// Closes connections that have been idle for too long, if it is time to look for them.
    pub(super) fn close_idle(&mut self) {
        let Some(at) = self.look_for_idle else { return };
        // Most turns end here: reading the clock is worth it only if a timer may have started this
        // turn.
        if !self.woken {
            return;
        }
        let now = Instant::now();
        if now >= at {
            self.look_for_idle = self.connections.close_idle(now, self.limits.idle_close);
        }
    }

    /// Returns the limits of the next batch if `flying` flights are under way.
    fn room(&self, flying: usize) -> Room {
        let setting = self.pace.setting();
        Room {
            rows: setting.rows,
            bytes: self.limits.batch_bytes.max(1),
            flights: setting.flights.saturating_sub(flying).max(1),
        }
    }

    /// Decides if units that delay others travel apart. They do while there are others.
    fn look_apart(&mut self, now: Instant) {
        let has_others = std::mem::take(&mut self.apart.has_others)
            || (self.ledger.queue.is_apart() && self.has_others_at_hand());
        if has_others {
            self.apart.others = Some(now);
        }
        self.ledger.queue.set_apart(self.apart.has_others(now));
    }

    /// True if units that do not travel apart wait or are under way.
    fn has_others_at_hand(&self) -> bool {
        let mut flights = self.connections.flights();
        self.ledger.queue.totals().units > 0 || flights.any(|flight| !flight.is_apart)
    }

    /// Notes that a flight apart has landed after `took`.
    pub(super) fn landed_apart(&mut self, took: Duration, now: Instant) {
        self.apart.landed = Some(now);
        let takes_turns = self.most_flights() == 1;
        self.apart.next = takes_turns.then(|| now + took.min(LONGEST_TURN));
    }

    /// Returns the time at which the next waiting flight apart may leave.
    pub(super) fn apart_at(&self) -> Option<Instant> {
        self.apart
            .next
            .filter(|_| self.ledger.queue.is_ready_apart())
    }

    /// True if flights must claim their keys, so that a flight apart can leave beside them.
    fn may_fly_apart(&self, now: Instant) -> bool {
        self.ledger.queue.is_ready_apart() || self.apart.is_expected(now)
    }

    /// Sends the batches that travel apart and may leave now.
    fn send_apart(&mut self, now: Instant) {
        if self.apart.next.is_some_and(|next| next <= now) || !self.apart.has_others(now) {
            self.apart.next = None;
        }
        let flights = self.pace.setting().flights;
        let limit = match self.apart.has_others(now) {
            true => flights.div_ceil(2),
            false => flights,
        };
        while self.ledger.queue.is_ready_apart() && self.apart.next.is_none() {
            let (mut flying, mut apart, mut keyed) = (0, 0, true);
            for flight in self.connections.flights() {
                flying += 1;
                apart += usize::from(flight.is_apart);
                keyed &= flight.keyed;
            }
            if !keyed || apart >= limit || flying >= self.most_flights() {
                return;
            }
            let Some(connection) = self.connections.idle() else {
                self.open_connection(flying + 1, now);
                return;
            };
            let mut room = self.room(apart);
            if self.most_flights() == 1 {
                room.rows = room.rows.min(ROWS_ALONE);
            }
            let (id, sink) = (self.next_flight, &*self.sink);
            let Ledger { queue, tickets, .. } = &mut self.ledger;
            let formed = queue.form_apart(room, id, tickets, sink);
            let Some(batch) = formed else { return };
            self.launch(connection, batch, (true, true), apart + 1, now);
        }
    }
}

/// True for few rows of many bytes. A batch of many rows has the size that pace has found best.
fn is_large(flight: &Flight) -> bool {
    flight.manifest.bytes >= LARGE && flight.manifest.rows <= FEW
}
