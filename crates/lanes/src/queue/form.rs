//! Forming a batch: sources take turns, so that none starves another.
//!
//! Deficit round robin by rows (Shreedhar and Varghese, 1995), with a share that starts at half of
//! what an even division would give and doubles each round: in the first round every source is
//! visited, so a single row always comes along where there is a row of room for each source; and a
//! lone source of a million rows is served in a few visits.

use windrow_core::Sink;

use super::keys::Keys;
use super::source::{Chunk, Source, SourceState};
use super::{Queue, Room, TotalsByWay};
use crate::arena::Arena;
use crate::batch::{Batch, Span};
use crate::ticket::Tickets;

/// The number of sources whose next unit does not fit that may be skipped, so that others fill the
/// batch. One more ends the batch.
const PASSED_OVER: usize = 8;

/// The fewest rows for each flight: fewer are not divided, because one commit for all of them is
/// best.
const WORTH_A_FLIGHT: usize = 64;

impl Queue {
    /// Takes the units of the next batch out of the queue. With a sink, claims their keys for the
    /// flight, and leaves units that touch a row under way. Returns `None` if nothing can leave.
    pub(crate) fn form(
        &mut self,
        room: Room,
        flight: u64,
        tickets: &mut Tickets,
        sink: Option<&dyn Sink>,
    ) -> Option<Batch> {
        // The two kinds take turns, so that neither waits for the other to run out.
        let retries_first = !self.retried || self.ring.is_empty();
        let orders = [retries_first, !retries_first];
        for retries in orders {
            let batch = if retries {
                self.form_retries(room, flight, tickets, sink)
            } else {
                self.form_fresh(room, flight, tickets, (sink, false))
            };
            if !batch.units.is_empty() {
                self.retried = retries;
                return Some(batch);
            }
        }
        None
    }

    /// As `form`, for units that travel apart from others. Always claims their keys.
    pub(crate) fn form_apart(
        &mut self,
        room: Room,
        flight: u64,
        tickets: &mut Tickets,
        sink: &dyn Sink,
    ) -> Option<Batch> {
        let batch = self.form_fresh(room, flight, tickets, (Some(sink), true));
        (!batch.units.is_empty()).then_some(batch)
    }

    /// Forms a batch of units that were rolled back before, no larger than each of them allows.
    fn form_retries(
        &mut self,
        mut room: Room,
        flight: u64,
        tickets: &mut Tickets,
        sink: Option<&dyn Sink>,
    ) -> Batch {
        let mut batch = Batch::default();
        batch.manifest.retry = true;
        while let Some(key) = self.retries.pop_front() {
            let Some(source) = self.sources.get_mut(key) else {
                continue;
            };
            let cap = source.retry().map_or(room.rows, |retry| retry.rows);
            if batch.manifest.rows > 0 && batch.manifest.rows >= cap.min(room.rows) {
                self.retries.push_front(key);
                break;
            }
            room.rows = room.rows.min(cap);
            source.deficit = usize::MAX;
            let mut filling = Filling {
                batch,
                room,
                flight,
                tickets,
                keys: &mut self.keys,
                sink,
                totals: &mut self.totals,
                short_only: false,
            };
            let stop = filling.take(key, source, true);
            batch = filling.batch;
            if source.state != SourceState::Away {
                source.state = SourceState::Idle;
                match stop {
                    Stop::Blocked(holder) => self.park(key, holder),
                    Stop::Room => {
                        source.state = SourceState::Retry;
                        self.retries.push_front(key);
                        break;
                    }
                    Stop::Drained | Stop::Share => self.settle(key, true),
                }
            }
        }
        batch
    }

    fn form_fresh(
        &mut self,
        room: Room,
        flight: u64,
        tickets: &mut Tickets,
        (sink, is_apart): (Option<&dyn Sink>, bool),
    ) -> Batch {
        let left = match is_apart {
            true => 0,
            false => self.left_for_others(room.flights),
        };
        let ring = match is_apart {
            true => &mut self.apart,
            false => &mut self.ring,
        };
        let mut filling = Filling {
            batch: Batch::default(),
            room,
            flight,
            tickets,
            keys: &mut self.keys,
            sink,
            totals: &mut self.totals,
            short_only: self.is_apart && !is_apart,
        };
        let expected = filling.totals.of(is_apart).units.min(room.rows);
        filling.batch.units.reserve(expected);
        filling.batch.manifest.spans.reserve(expected);
        filling.batch.manifest.sources.reserve(expected);
        let mut turns = Turns::default();
        let visits = ring.len() - left;
        let mut share = (room.rows / (2 * visits.max(1))).max(1);
        for _ in 0..visits {
            if turns.are_over(&filling) {
                break;
            }
            if let Some(key) = ring.pop_front() {
                turns.visit(&mut filling, &mut self.sources, key, share);
            }
        }
        while !turns.more.is_empty() && !turns.are_over(&filling) {
            share = match turns.more.len() {
                1 => usize::MAX,
                _ => share.saturating_mul(2),
            };
            turns.round(&mut filling, &mut self.sources, share);
        }
        let mut batch = filling.batch;
        batch.manifest.cut |= ring.len() > left || !turns.more.is_empty();
        self.end_turns(turns, is_apart);
        batch
    }

    /// Returns the number of sources to leave for the other flights that could leave. A source is
    /// in one flight at a time, so a batch that took a little of each would leave nothing for
    /// another flight.
    fn left_for_others(&self, flights: usize) -> usize {
        let sources = self.ring.len();
        if self.totals.together.rows < flights * WORTH_A_FLIGHT {
            return 0;
        }
        sources - sources.div_ceil(flights.max(1))
    }

    /// Puts the sources that gave nothing back into their lists. Those that gave units are away
    /// now.
    fn end_turns(&mut self, turns: Turns, is_apart: bool) {
        let stayed = turns.passed_over.into_iter().chain(turns.more);
        let stayed: Vec<usize> = stayed.filter(|key| !self.is_away(*key)).collect();
        let ring = match is_apart {
            true => &mut self.apart,
            false => &mut self.ring,
        };
        for key in stayed.into_iter().rev() {
            ring.push_front(key);
        }
        for (key, holder) in turns.blocked {
            self.park(key, holder);
        }
        for key in turns.gone {
            self.settle(key, true);
        }
    }
}

/// The visited sources, by what happens to them next.
#[derive(Default)]
struct Turns {
    /// Had their share and have more units.
    more: Vec<usize>,
    /// Gave nothing, because their next unit does not fit.
    passed_over: Vec<usize>,
    /// Gave nothing, because their next unit touches a row in another flight.
    blocked: Vec<(usize, u64)>,
    /// Gave nothing, because their clients have left, or because they travel apart from now on.
    gone: Vec<usize>,
}

impl Turns {
    fn are_over(&self, filling: &Filling<'_>) -> bool {
        filling.is_full() || self.passed_over.len() >= PASSED_OVER
    }

    fn round(&mut self, filling: &mut Filling<'_>, sources: &mut Arena<Source>, share: usize) {
        let mut keys = std::mem::take(&mut self.more).into_iter();
        while !self.are_over(filling)
            && let Some(key) = keys.next()
        {
            self.visit(filling, sources, key, share);
        }
        self.more.extend(keys);
    }

    fn visit(
        &mut self,
        filling: &mut Filling<'_>,
        sources: &mut Arena<Source>,
        key: usize,
        share: usize,
    ) {
        let Some(source) = sources.get_mut(key) else {
            return;
        };
        source.deficit = source.deficit.saturating_add(share);
        let stop = filling.take(key, source, false);
        let away = source.state == SourceState::Away;
        filling.batch.manifest.cut |= stop == Stop::Room;
        match stop {
            Stop::Share => self.more.push(key),
            _ if away => {}
            Stop::Room => self.passed_over.push(key),
            Stop::Blocked(holder) => self.blocked.push((key, holder)),
            Stop::Drained => self.gone.push(key),
        }
    }
}

/// The reason why a source gave no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The source has no more units that may be part of the batch.
    Drained,
    /// The source has had its share of this turn.
    Share,
    /// The next unit does not fit into the batch.
    Room,
    /// The next unit touches a row that is under way in this flight.
    Blocked(u64),
}

/// A batch that is being filled.
struct Filling<'a> {
    batch: Batch,
    room: Room,
    flight: u64,
    tickets: &'a mut Tickets,
    keys: &'a mut Keys,
    sink: Option<&'a dyn Sink>,
    totals: &'a mut TotalsByWay,
    /// True if units with long answers stay in the queue.
    short_only: bool,
}

impl Filling<'_> {
    fn is_full(&self) -> bool {
        let manifest = &self.batch.manifest;
        manifest.rows >= self.room.rows || manifest.bytes >= self.room.bytes
    }

    /// Takes the units that the source may add: new ones, or with `retry` those that are tried
    /// again.
    fn take(&mut self, key: usize, source: &mut Source, retry: bool) -> Stop {
        loop {
            let Some(chunk) = source.chunks.front_mut() else {
                return Stop::Drained;
            };
            if chunk.retry.is_some() != retry {
                return Stop::Drained;
            }
            if self.tickets.is_abandoned(chunk.ticket) {
                self.forgo(chunk, source.is_apart);
                source.chunks.pop_front();
                continue;
            }
            let (count, stop) = self.fit(chunk, &mut source.deficit, source.is_apart);
            if count > 0 {
                if source.state != SourceState::Away {
                    source.state = SourceState::Away;
                    self.batch.manifest.sources.push(key);
                }
                self.load(key, chunk, count);
            }
            match stop {
                Some(stop) => return stop,
                None => source.chunks.pop_front(),
            };
        }
    }

    /// Returns how many units of the chunk fit, and why the next one does not.
    fn fit(&mut self, chunk: &Chunk, deficit: &mut usize, is_apart: bool) -> (usize, Option<Stop>) {
        let manifest = &mut self.batch.manifest;
        for (count, unit) in chunk.units.as_slice().iter().enumerate() {
            if self.short_only && unit.has_long_answer() {
                return (count, Some(Stop::Drained));
            }
            let (rows, bytes) = (unit.rows(), unit.bytes());
            let (all_rows, all_bytes) = (manifest.rows + rows, manifest.bytes + bytes);
            if all_rows > self.room.rows || all_bytes > self.room.bytes {
                // A unit is never split: one that is larger than a batch travels alone.
                if manifest.rows > 0 {
                    return (count, Some(Stop::Room));
                }
            } else if rows > *deficit {
                return (count, Some(Stop::Share));
            }
            if let Some(sink) = self.sink
                && let Err(flight) = self
                    .keys
                    .claim(self.flight, unit, sink, &mut manifest.hashes)
            {
                return (count, Some(Stop::Blocked(flight)));
            }
            *deficit = deficit.saturating_sub(rows);
            (manifest.rows, manifest.bytes) = (all_rows, all_bytes);
            self.totals.of(is_apart).leave(1, rows, bytes);
        }
        (chunk.units.len(), None)
    }

    fn load(&mut self, key: usize, chunk: &mut Chunk, count: usize) {
        self.batch.manifest.add(Span {
            source: key,
            ticket: chunk.ticket,
            first: chunk.first,
            count,
            attempts: chunk.retry.map_or(0, |retry| retry.attempts),
            arrived: chunk.arrived,
        });
        chunk.first += count;
        // Nearly always one, for which push costs less than extend.
        for _ in 0..count {
            if let Some(unit) = chunk.units.next() {
                self.batch.units.push(unit);
            }
        }
    }

    /// Takes out units whose client has left.
    fn forgo(&mut self, chunk: &Chunk, is_apart: bool) {
        let totals = self.totals.of(is_apart);
        totals.leave_all(chunk);
        totals.abandoned += chunk.units.len();
        self.tickets.forgo(chunk.ticket, chunk.units.len());
    }
}
