//! The units that wait in a lane, and the forming of batches. Pure: no clock, no channel, no task.
//!
//! Units of one source keep their order and are in one flight at a time: a source is in at most one
//! of the lists below. Every operation is O(1) for each unit, whatever else is queued.

mod cancel;
mod form;
mod keys;
mod source;
mod suspects;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use tokio::time::Instant;
use windrow_core::{Fault, Sink, SourceId, Unit};

pub(crate) use self::cancel::CancelPlace;
pub(crate) use self::source::{Chunk, RetryPlan};

use self::keys::Keys;
use self::source::{Source, SourceState};
use self::suspects::{Suspect, Suspects};
use crate::arena::Arena;
use crate::batch::Manifest;
use crate::ticket::Tickets;

/// The limits of one batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// The number of flights that could leave now, this one included. The units are divided among
    /// them.
    pub(crate) flights: usize,
}

/// The sums of units that wait.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) units: usize,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// The number of units ever taken out because their client had left.
    pub(crate) abandoned: usize,
}

/// The totals of units that travel with others, and of those that travel apart.
#[derive(Debug, Default)]
struct TotalsByWay {
    together: Totals,
    apart: Totals,
}

impl TotalsByWay {
    fn of(&mut self, is_apart: bool) -> &mut Totals {
        match is_apart {
            true => &mut self.apart,
            false => &mut self.together,
        }
    }
}

/// The queue of a lane.
#[derive(Debug)]
pub(crate) struct Queue {
    sources: Arena<Source>,
    by_id: HashMap<SourceId, usize, RandomState>,
    /// Sources whose next units may leave, in the order of their turns.
    ring: VecDeque<usize>,
    /// Sources whose next units may leave, but travel apart from others: because their units fail
    /// again and again, or because the next answer is expected to be long.
    apart: VecDeque<usize>,
    suspects: Suspects,
    /// The highest source number seen.
    newest: Option<SourceId>,
    /// True while there are units from which others have to travel apart.
    is_apart: bool,
    /// Sources whose next units have been rolled back.
    retries: VecDeque<usize>,
    /// Sources whose next units have been rolled back and must wait until a certain time.
    resting: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Sources that wait for a flight to end, by that flight.
    parked: HashMap<u64, Vec<usize>, RandomState>,
    keys: Keys,
    totals: TotalsByWay,
    /// The number of sources in the lists that may have no units.
    hollow: usize,
    /// True if the last batch consisted of units that had been rolled back.
    retried: bool,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            sources: Arena::new(),
            by_id: HashMap::default(),
            ring: VecDeque::new(),
            apart: VecDeque::new(),
            suspects: Suspects::default(),
            newest: None,
            is_apart: false,
            retries: VecDeque::new(),
            resting: BinaryHeap::new(),
            parked: HashMap::default(),
            keys: Keys::default(),
            totals: TotalsByWay::default(),
            hollow: 0,
            retried: false,
        }
    }

    /// Adds what a source has submitted, after its earlier submissions.
    pub(crate) fn push(&mut self, id: SourceId, chunk: Chunk) {
        let new_to = self.new_to(id, chunk.units.as_slice().first());
        self.newest = self.newest.max(Some(id));
        let sources = &mut self.sources;
        let key = *self
            .by_id
            .entry(id)
            .or_insert_with(|| sources.insert(Source::new(id, new_to)));
        if let Some(source) = self.sources.get_mut(key) {
            self.totals.of(source.is_apart).enter_all(&chunk);
            source.chunks.push_back(chunk);
            if source.state == SourceState::Idle {
                self.settle(key, false);
            }
        }
    }

    /// Puts units back before the others of their source, which must be away.
    pub(crate) fn put_back(&mut self, key: usize, chunk: Chunk) {
        if let Some(source) = self.sources.get_mut(key) {
            self.totals.of(source.is_apart).enter_all(&chunk);
            source.chunks.push_front(chunk);
        }
    }

    /// Counts the outcome of a source's unit.
    pub(crate) fn note(&mut self, key: usize, has_failed: bool) {
        if let Some(source) = self.sources.get_mut(key) {
            self.suspects.note(Suspect::Source(source.id), has_failed);
            if let Some(table) = source.new_to.take() {
                self.suspects.note(Suspect::NewTo(table), has_failed);
            }
        }
    }

    /// Returns the hash of the table of a source's first write, if the source is new. Source
    /// numbers rise.
    fn new_to(&self, id: SourceId, first: Option<&Unit>) -> Option<u64> {
        let write = first.and_then(|unit| unit.writes().first());
        let write = write.filter(|_| Some(id) > self.newest);
        write.map(|write| self.by_id.hasher().hash_one(write.table()))
    }

    /// True if other units should not wait for a unit of this source. `next`: that unit.
    pub(crate) fn delays_others(&self, id: SourceId, next: Option<&Unit>) -> bool {
        self.suspects.delays_others(id, self.new_to(id, next), next)
    }

    /// True while units that delay others travel apart.
    pub(crate) fn is_apart(&self) -> bool {
        self.is_apart
    }

    /// Sets whether units that delay others travel apart. They need not if there are no others.
    pub(crate) fn set_apart(&mut self, is_apart: bool) {
        self.is_apart = is_apart;
    }

    /// Frees the keys of a flight that has ended, and lets its sources go on, except those that
    /// `held` keeps.
    pub(crate) fn release(
        &mut self,
        flight: u64,
        manifest: &Manifest,
        held: impl Fn(usize) -> bool,
    ) {
        self.release_keys(flight, &manifest.hashes);
        for key in &manifest.sources {
            if !held(*key) {
                self.release_source(*key);
            }
        }
    }

    /// Lets a source go on that was away.
    pub(crate) fn release_source(&mut self, key: usize) {
        if let Some(source) = self.sources.get_mut(key) {
            source.state = SourceState::Idle;
            source.deficit = 0;
            self.settle(key, false);
        }
    }

    /// Frees the keys of a flight. Sources that waited for them go first.
    pub(crate) fn release_keys(&mut self, flight: u64, hashes: &[u64]) {
        self.keys.release(hashes);
        for key in self
            .parked
            .remove(&flight)
            .unwrap_or_default()
            .into_iter()
            .rev()
        {
            if let Some(source) = self.sources.get_mut(key) {
                source.state = SourceState::Idle;
                self.settle(key, true);
            }
        }
    }

    /// Claims those keys of a unit that runs alone that no flight holds.
    pub(crate) fn claim(
        &mut self,
        flight: u64,
        unit: &Unit,
        sink: &dyn Sink,
        hashes: &mut Vec<u64>,
    ) {
        // A key that a flight holds stays with the flight: the database's own locks decide between
        // the two.
        let _held_elsewhere = self.keys.claim(flight, unit, sink, hashes).is_err();
    }

    /// True if a batch could be formed now.
    pub(crate) fn is_ready(&self) -> bool {
        // Hollow entries alone are no reason to form a batch.
        let is_fresh = self.totals.together.units > 0 && !self.ring.is_empty();
        is_fresh || (self.units() > 0 && !self.retries.is_empty())
    }

    /// True if a batch of units that travel apart could be formed now.
    pub(crate) fn is_ready_apart(&self) -> bool {
        self.totals.apart.units > 0 && !self.apart.is_empty()
    }

    /// Returns the number of units that wait.
    pub(crate) fn units(&self) -> usize {
        self.totals.together.units + self.totals.apart.units
    }

    /// True if units wait that were rolled back before: they are not held back any longer.
    pub(crate) fn has_retries(&self) -> bool {
        !self.retries.is_empty()
    }

    /// Returns the number of sources that have units waiting or under way.
    pub(crate) fn sources(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the units that wait to travel together.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals.together
    }

    /// Returns the units that wait to travel apart.
    pub(crate) fn totals_apart(&self) -> &Totals {
        &self.totals.apart
    }

    /// Returns the time at which the next units may be tried again.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        self.resting.peek().map(|Reverse((at, _))| *at)
    }

    /// Lets the sources go on whose retry delay is over.
    pub(crate) fn wake(&mut self, now: Instant) {
        while let Some(Reverse((at, key))) = self.resting.peek().copied() {
            if at > now {
                return;
            }
            self.resting.pop();
            match self.sources.get_mut(key) {
                // Its units were dropped because the client has left.
                Some(source) if source.chunks.is_empty() => {
                    self.by_id.remove(&source.id);
                    self.sources.forget(key);
                }
                Some(source) => {
                    source.state = SourceState::Retry;
                    self.retries.push_back(key);
                }
                None => {}
            }
        }
    }

    /// Fails all queued units except those that `stays` keeps, given their ticket and arrival.
    /// Returns the arrival of the oldest one kept. O(all waiting submissions): used only while the
    /// database is away.
    pub(crate) fn fail(
        &mut self,
        fault: &Fault,
        tickets: &mut Tickets,
        stays: impl Fn(&Tickets, usize, Instant) -> bool,
    ) -> Option<Instant> {
        let mut oldest = None;
        for key in self.sources.keys() {
            let Some(source) = self.sources.get_mut(key) else {
                continue;
            };
            let stays = |chunk: &Chunk| stays(tickets, chunk.ticket, chunk.arrived);
            for chunk in source.chunks.remove(stays) {
                self.totals.of(source.is_apart).leave_all(&chunk);
                tickets.fail(chunk.ticket, chunk.first, chunk.units.len(), fault);
            }
            let first = source.chunks.front().map(|chunk| chunk.arrived);
            oldest = [oldest, first].into_iter().flatten().min();
        }
        self.clear_hollow();
        oldest
    }

    fn is_away(&self, key: usize) -> bool {
        self.sources
            .get(key)
            .is_none_or(|source| source.state == SourceState::Away)
    }

    fn park(&mut self, key: usize, holder: u64) {
        if let Some(source) = self.sources.get_mut(key) {
            source.state = SourceState::Parked;
            self.parked.entry(holder).or_default().push(key);
        }
    }

    /// Puts a source that is in no list into the list for its next units; removes it if it has
    /// none.
    fn settle(&mut self, key: usize, first: bool) {
        let Some(source) = self.sources.get_mut(key) else {
            return;
        };
        let list = match source.retry() {
            Some(RetryPlan { at: Some(at), .. }) => {
                source.state = SourceState::Resting;
                self.resting.push(Reverse((at, key)));
                return;
            }
            Some(_) => {
                source.state = SourceState::Retry;
                &mut self.retries
            }
            None if source.chunks.is_empty() => {
                self.by_id.remove(&source.id);
                self.sources.forget(key);
                return;
            }
            None => {
                source.state = SourceState::Ring;
                let delays = self
                    .suspects
                    .delays_others(source.id, source.new_to, source.next());
                let is_apart = self.is_apart && delays;
                if source.is_apart != is_apart {
                    for chunk in source.chunks.iter() {
                        self.totals.of(source.is_apart).leave_all(chunk);
                        self.totals.of(is_apart).enter_all(chunk);
                    }
                    source.is_apart = is_apart;
                }
                match is_apart {
                    true => &mut self.apart,
                    false => &mut self.ring,
                }
            }
        };
        if first {
            list.push_front(key);
        } else {
            list.push_back(key);
        }
    }
}

impl Totals {
    fn enter_all(&mut self, chunk: &Chunk) {
        for unit in chunk.units.as_slice() {
            self.units += 1;
            self.rows += unit.rows();
            self.bytes += unit.bytes();
        }
    }

    fn leave_all(&mut self, chunk: &Chunk) {
        for unit in chunk.units.as_slice() {
            self.leave(1, unit.rows(), unit.bytes());
        }
    }

    fn leave(&mut self, units: usize, rows: usize, bytes: usize) {
        self.units = self.units.saturating_sub(units);
        self.rows = self.rows.saturating_sub(rows);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}
