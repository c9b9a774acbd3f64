//! Takes units out of the queue before they leave.
//!
//! A source without units stays in its list as a hollow entry until its next turn: finding it at
//! once would mean a walk through the whole list. If hollow entries become many, one walk removes
//! all of them.

use tokio::time::Instant;
use windrow_core::{Fault, SourceId};

use super::Queue;
use super::source::{Chunks, SourceState};
use crate::ticket::Tickets;

/// The place of the first unanswered unit of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelPlace {
    /// The source has no unanswered unit.
    Nothing,
    /// The unit was in the queue: it is taken out and answered.
    Queued,
    /// The unit is under way, or waits to run alone. Contains the source's key.
    Away(usize),
}

/// The number of hollow entries that is always allowed.
const HOLLOW: usize = 64;

impl Queue {
    /// Takes out the first unanswered unit of a source, and answers its client with a fault. Units
    /// submitted after the client asked are not affected.
    pub(crate) fn cancel(
        &mut self,
        id: SourceId,
        asked: Instant,
        fault: &Fault,
        tickets: &mut Tickets,
    ) -> CancelPlace {
        let Some(key) = self.forgo(id, tickets) else {
            return CancelPlace::Nothing;
        };
        let Some(source) = self.sources.get_mut(key) else {
            return CancelPlace::Nothing;
        };
        if source.state == SourceState::Away {
            return CancelPlace::Away(key);
        }
        let chunk = source.chunks.front_mut();
        let Some(chunk) = chunk.filter(|chunk| chunk.arrived <= asked) else {
            return CancelPlace::Nothing;
        };
        let Some(unit) = chunk.units.next() else {
            return CancelPlace::Nothing;
        };
        let totals = self.totals.of(source.is_apart);
        totals.leave(1, unit.rows(), unit.bytes());
        tickets.fail(chunk.ticket, chunk.first, 1, fault);
        chunk.first += 1;
        if chunk.units.len() == 0 {
            source.chunks.pop_front();
        }
        self.hollow(key);
        CancelPlace::Queued
    }

    /// Notes that a source's client has closed its side of the connection. Returns the source's key
    /// if one of its units waits or is under way.
    pub(crate) fn close(&mut self, id: SourceId) -> Option<usize> {
        let key = *self.by_id.get(&id)?;
        self.sources.get_mut(key)?.closed = true;
        Some(key)
    }

    /// True once a source's client has closed its side.
    pub(crate) fn is_closed(&self, key: usize) -> bool {
        self.sources.get(key).is_some_and(|source| source.closed)
    }

    /// Drops the units of a source whose client has left. Returns the source's key if it is known.
    pub(crate) fn forgo(&mut self, id: SourceId, tickets: &mut Tickets) -> Option<usize> {
        let key = *self.by_id.get(&id)?;
        let source = self.sources.get_mut(key)?;
        for chunk in source
            .chunks
            .remove(|chunk| !tickets.is_abandoned(chunk.ticket))
        {
            let totals = self.totals.of(source.is_apart);
            totals.leave_all(&chunk);
            totals.abandoned += chunk.units.len();
            tickets.forgo(chunk.ticket, chunk.units.len());
        }
        self.hollow(key);
        Some(key)
    }

    /// Counts a source that has become hollow.
    fn hollow(&mut self, key: usize) {
        let is_hollow = |chunks: &Chunks, state| chunks.is_empty() && state == SourceState::Ring;
        let source = self.sources.get(key);
        if source.is_some_and(|source| is_hollow(&source.chunks, source.state)) {
            self.hollow += 1;
        }
        let listed = self.ring.len() + self.apart.len();
        if self.hollow > HOLLOW && self.hollow * 2 > listed {
            self.clear_hollow();
        }
    }

    /// Removes hollow entries from all lists.
    pub(super) fn clear_hollow(&mut self) {
        self.hollow = 0;
        let (sources, by_id) = (&mut self.sources, &mut self.by_id);
        let mut stays = |key: &usize| {
            let Some(source) = sources.get(*key) else {
                return false;
            };
            let stays = !source.chunks.is_empty();
            if !stays {
                by_id.remove(&source.id);
                sources.forget(*key);
            }
            stays
        };
        self.ring.retain(&mut stays);
        self.apart.retain(&mut stays);
        self.retries.retain(stays);
    }
}
