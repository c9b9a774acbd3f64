//! The units of one source, in their order.

use std::collections::VecDeque;

use tokio::time::Instant;
use windrow_core::{SourceId, Unit};

/// The place of a source. A source is in at most one list of the queue, so that none of its units
/// overtakes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceState {
    /// In no list.
    Idle,
    /// In the ring: its next units may leave with any batch.
    Ring,
    /// Among those whose next units were rolled back, and travel in small batches.
    Retry,
    /// Waiting until its retry delay is over.
    Resting,
    /// Waiting for the flight that holds a key of its next unit.
    Parked,
    /// Under way, or waiting for a unit of its own that runs alone.
    Away,
}

#[derive(Debug)]
pub(super) struct Source {
    pub(super) id: SourceId,
    pub(super) chunks: Chunks,
    /// Rows that the source may still add in this turn.
    pub(super) deficit: usize,
    pub(super) state: SourceState,
    /// True once its client has closed its side of the connection: then none of its units waits for
    /// a lock.
    pub(super) closed: bool,
    /// The hash of the table of its first write, until it has its first outcome.
    pub(super) new_to: Option<u64>,
    /// True while its units travel apart from those of others.
    pub(super) is_apart: bool,
}

impl Source {
    pub(super) fn new(id: SourceId, new_to: Option<u64>) -> Self {
        Self {
            id,
            chunks: Chunks::default(),
            deficit: 0,
            state: SourceState::Idle,
            closed: false,
            new_to,
            is_apart: false,
        }
    }

    /// Returns the next unit.
    pub(super) fn next(&self) -> Option<&Unit> {
        let front = self.chunks.front();
        front.and_then(|chunk| chunk.units.as_slice().first())
    }

    /// Returns the retry plan of the next units, if they have been under way before.
    pub(super) fn retry(&self) -> Option<RetryPlan> {
        self.chunks.front().and_then(|chunk| chunk.retry)
    }
}

/// The units of one submission that have not left.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) ticket: usize,
    /// The index of the next unit in the submission.
    pub(crate) first: usize,
    pub(crate) units: smallvec::IntoIter<[Unit; 1]>,
    pub(crate) arrived: Instant,
    pub(crate) retry: Option<RetryPlan>,
}

/// The plan for units that were rolled back through no fault of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryPlan {
    pub(crate) attempts: u32,
    /// The most rows of a batch that they may be part of.
    pub(crate) rows: usize,
    /// The earliest time at which they may leave.
    pub(crate) at: Option<Instant>,
}

/// A queue of chunks. Nearly always there is one, which needs no allocation.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    front: Option<Chunk>,
    rest: VecDeque<Chunk>,
}

impl Chunks {
    pub(super) fn front(&self) -> Option<&Chunk> {
        self.front.as_ref()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut Chunk> {
        self.front.as_mut()
    }

    pub(super) fn push_back(&mut self, chunk: Chunk) {
        if self.front.is_none() {
            self.front = Some(chunk);
        } else {
            self.rest.push_back(chunk);
        }
    }

    pub(super) fn push_front(&mut self, chunk: Chunk) {
        if let Some(second) = self.front.replace(chunk) {
            self.rest.push_front(second);
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<Chunk> {
        let popped = self.front.take();
        self.front = self.rest.pop_front();
        popped
    }

    pub(super) fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Chunk> {
        self.front.iter().chain(&self.rest)
    }

    /// Removes and returns the chunks that do not satisfy `keep`.
    pub(super) fn remove(&mut self, keep: impl Fn(&Chunk) -> bool) -> Vec<Chunk> {
        let (kept, removed): (Vec<_>, Vec<_>) = std::iter::from_fn(|| self.pop_front())
            .collect::<Vec<_>>()
            .into_iter()
            .partition(keep);
        kept.into_iter().for_each(|chunk| self.push_back(chunk));
        removed
    }
}
