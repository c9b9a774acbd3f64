//! Flights of units that delay others: those of sources that fail again and again, and those with
//! long answers. They leave beside the flights of others, so that no client waits for them.
//!
//! A unit that fails has to be isolated, which takes a database several round trips and the CPU
//! time of many rows. A flight with long answers lands when the last of them is there. While there
//! are others, at most half as many such flights leave as pace allows others. Where only one flight
//! can be under way, the two kinds take turns. What such flights take teaches pace nothing.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::{Submission, UnitOutcome, Work};

use super::state::Worker;
use crate::batch::Span;
use crate::queue::is_own;

/// Where others cannot leave beside such a flight, the next one leaves as much later as it took,
/// and no more than this.
const LONGEST_TURN: Duration = Duration::from_millis(250);

/// The most rows of such a batch where others cannot leave beside it.
const ROWS_ALONE: usize = 64;

impl<W: Work> Worker<W> {
    /// Counts the outcome of a unit for its source.
    pub(super) fn note_source(&mut self, span: &Span, outcome: &UnitOutcome<W::Done>) {
        let has_failed = outcome.as_ref().is_err_and(|f| is_own(f.fault.class));
        self.queue.note(span.source, has_failed);
    }

    /// Looks for units that arrive: returns true if they travel apart.
    pub(super) fn arrives_apart(&mut self, submission: &Submission<W>) -> bool {
        let next = submission.units.first();
        let delays = self.queue.delays_others(submission.source, next);
        self.apart.has_others |= !delays;
        delays && self.queue.is_apart()
    }

    /// Decides if units that delay others are to travel apart: while there are others, which may
    /// take their time.
    pub(super) fn look_apart(&mut self, now: Instant) {
        let has_others = std::mem::take(&mut self.apart.has_others)
            || (self.queue.is_apart() && self.has_others_at_hand());
        if has_others {
            self.apart.others = Some(now);
        }
        self.queue.set_apart(self.apart.has_others(now));
    }

    /// True if units wait or fly that do not travel apart.
    fn has_others_at_hand(&self) -> bool {
        let mut flights = self.connections.flights();
        self.queue.totals().units > 0 || flights.any(|flight| !flight.is_apart)
    }

    /// A flight apart has landed that took so long.
    pub(super) fn landed_apart(&mut self, took: Duration, now: Instant) {
        self.apart.landed = Some(now);
        let takes_turns = self.most_flights() == 1;
        self.apart.next = takes_turns.then(|| now + took.min(LONGEST_TURN));
    }

    /// When the next flight apart may leave that waits.
    pub(super) fn apart_at(&self) -> Option<Instant> {
        self.apart.next.filter(|_| self.queue.is_ready_apart())
    }

    /// True if flights need to know their keys, so that one apart can leave beside them.
    pub(super) fn may_fly_apart(&self, now: Instant) -> bool {
        self.queue.is_ready_apart() || self.apart.is_expected(now)
    }

    /// Sends off what travels apart, as far as it may leave now.
    pub(super) fn send_apart(&mut self, now: Instant) {
        if self.apart.next.is_some_and(|next| next <= now) || !self.apart.has_others(now) {
            self.apart.next = None;
        }
        let flights = self.pace.setting().flights;
        let limit = match self.apart.has_others(now) {
            true => flights.div_ceil(2),
            false => flights,
        };
        while self.queue.is_ready_apart() && self.apart.next.is_none() {
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
            let formed = self.queue.form_apart(room, id, &mut self.tickets, sink);
            let Some(batch) = formed else { return };
            self.launch(connection, batch, (true, true), apart + 1, now);
        }
    }
}
