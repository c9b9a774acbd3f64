//! Filling a batch from one source after another.

use windrow_core::Sink;

use super::keys::Keys;
use super::source::{Chunk, Source, SourceState};
use super::{Room, TotalsByWay};
use crate::batch::{Batch, Span};
use crate::ticket::Tickets;

/// Why a source gave no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The source has no more units that may come along.
    Drained,
    /// The source has had its share of this turn.
    Share,
    /// The next unit does not fit into the batch any more.
    Room,
    /// The next unit touches a row that is under way in this flight.
    Blocked(u64),
}

/// A batch that is being filled.
pub(super) struct Filling<'a> {
    pub(super) batch: Batch,
    pub(super) room: Room,
    pub(super) flight: u64,
    pub(super) tickets: &'a mut Tickets,
    pub(super) keys: &'a mut Keys,
    pub(super) sink: Option<&'a dyn Sink>,
    pub(super) totals: &'a mut TotalsByWay,
    /// True if units with long answers stay.
    pub(super) short_only: bool,
}

impl Filling<'_> {
    pub(super) fn is_full(&self) -> bool {
        let manifest = &self.batch.manifest;
        manifest.rows >= self.room.rows || manifest.bytes >= self.room.bytes
    }

    /// Takes what the source may add: of its fresh units, or of those that are tried again.
    pub(super) fn take(&mut self, key: usize, source: &mut Source, retry: bool) -> Stop {
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

    /// Returns how many units of the chunk come along, and the reason why the others do not.
    fn fit(&mut self, chunk: &Chunk, deficit: &mut usize, is_apart: bool) -> (usize, Option<Stop>) {
        let manifest = &mut self.batch.manifest;
        for (count, unit) in chunk.units.as_slice().iter().enumerate() {
            if self.short_only && unit.has_long_answer() {
                return (count, Some(Stop::Drained));
            }
            let (rows, bytes) = (unit.rows(), unit.bytes());
            let (all_rows, all_bytes) = (manifest.rows + rows, manifest.bytes + bytes);
            if all_rows > self.room.rows || all_bytes > self.room.bytes {
                // A unit is never cut: one that fits no batch travels alone.
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
        // Nearly always one, for which a plain push costs less than to extend.
        for _ in 0..count {
            if let Some(unit) = chunk.units.next() {
                self.batch.units.push(unit);
            }
        }
    }

    /// Takes units out whose client has left.
    fn forgo(&mut self, chunk: &Chunk, is_apart: bool) {
        let totals = self.totals.of(is_apart);
        totals.leave_all(chunk);
        totals.abandoned += chunk.units.len();
        self.tickets.forgo(chunk.ticket, chunk.units.len());
    }
}
