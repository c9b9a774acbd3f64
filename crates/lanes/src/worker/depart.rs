//! Sending batches off.

use tokio::time::Instant;
use windrow_core::{Fault, Report, Sink, Verdict, Work};

use super::state::Worker;
use crate::batch::Batch;
use crate::connections::Flight;
use crate::message::Landed;

/// From so many bytes on a flight takes its time: others leave beside it as if it were overdue.
const LARGE: usize = 64 << 10;

/// Flights that may leave beside those that are overdue or large: enough for a few rows that wait
/// for locks, and too few to crowd a database that stands still.
const BESIDE: usize = 4;

/// Rows of a batch that is looked at for its keys although it may have the lane to itself.
const FEW: usize = 32;

impl<W: Work> Worker<W> {
    /// Sends off all that may leave now: while fewer flights are under way than are of use, a batch
    /// leaves at once.
    pub(super) fn depart(&mut self) {
        if self.queue.wakes_at().is_some() {
            self.queue.wake(Instant::now());
        }
        self.expire();
        self.answer_late();
        self.close_idle();
        self.start_lock_waits();
        (self.held_until, self.overdue_at) = (None, None);
        let now = Instant::now();
        self.look_apart(now);
        // First, for others leave whenever they can; they rest in between.
        self.send_apart(now);
        self.crowded = self.send_all();
        // Again, for units that turned out not to travel with others.
        self.send_apart(now);
    }

    /// Gives true if units stay until a flight has landed: because no further one may leave, or
    /// because what their source sent before is under way.
    fn send_all(&mut self) -> bool {
        while self.queue.is_ready() {
            let (mut flying, mut apart, mut keyed) = (0, 0, true);
            for flight in self.connections.flights() {
                let kind = match flight.is_apart {
                    true => &mut apart,
                    false => &mut flying,
                };
                *kind += 1;
                keyed &= flight.keyed;
            }
            // A flight whose keys are not known has the lane to itself.
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
        self.queue.totals().units > 0 && self.held_until.is_none() && self.are_all_flying()
    }

    /// Opens a connection, if there are fewer than `limit` and one more may be opened.
    pub(super) fn open_connection(&mut self, limit: usize, now: Instant) {
        if self.connections.wants_more(limit, now) {
            self.connections.open(
                &self.sink,
                &self.signals,
                &self.tasks,
                &self.meters.failures,
            );
        }
    }

    /// True while as many flights are under way as were found to be of use.
    fn are_all_flying(&self) -> bool {
        let flights = self.connections.flights();
        let flying = flights.filter(|flight| !flight.is_apart).count();
        flying >= self.pace.setting().flights
    }

    /// Returns how many of the flights under way are overdue or large. Notes when the next of them
    /// will be overdue.
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

    /// The most flights that the database and the limits allow.
    pub(super) fn most_flights(&self) -> usize {
        self.pace.bounds().flights
    }

    /// True where others may leave beside the next batch should it be overdue. The keys of a large
    /// one cost more than that is worth: where there is much to do, flights are large and alike.
    fn may_be_late(&self) -> bool {
        self.most_flights() > 1 && self.queue.totals().rows <= FEW
    }

    /// Forms a batch and hands it to a connection. False if nothing can leave.
    fn send_off(&mut self, connection: u64, keyed: bool, flying: usize, now: Instant) -> bool {
        let id = self.next_flight;
        let sink: Option<&dyn Sink<W>> = if keyed { Some(&*self.sink) } else { None };
        let formed = self
            .queue
            .form(self.room(flying - 1), id, &mut self.tickets, sink);
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
        batch: Batch<W>,
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
            self.meters.queue_seconds.observe(waited.as_secs_f64());
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
            self.unload(flight, Landed { units, report });
        }
    }

    /// True while units are held back for others to join them: for those who were just answered,
    /// where that was seen to pay, or because `max_wait` asks for it.
    fn is_held_back(&mut self, now: Instant) -> bool {
        let gather = self.pace.setting().gather;
        if (self.limits.max_wait.is_zero() && !gather) || self.queue.has_retries() || !self.open {
            return false;
        }
        let (room, totals) = (self.room(0), self.queue.totals());
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
}

/// True for few rows of many bytes. Many rows are what pace has found to be best.
fn is_large(flight: &Flight) -> bool {
    flight.manifest.bytes >= LARGE && flight.manifest.rows <= FEW
}
