//! One source's units, in its order.

use std::collections::VecDeque;

use tokio::time::Instant;
use windrow_core::{SourceId, Unit};

/// Where a source is at this moment. It is in at most one list of the queue, so that none of its
/// units overtakes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceState {
    /// In none.
    Idle,
    /// In the ring: its next units may leave with any batch.
    Ring,
    /// Among those whose next units have failed to get through and travel in small batches.
    Retry,
    /// Waiting for its time to be put among those.
    Resting,
    /// Waiting for the flight that holds a key which its next unit touches.
    Parked,
    /// Under way, or held by a unit that runs alone.
    Away,
}

#[derive(Debug)]
pub(super) struct Source {
    pub(super) id: SourceId,
    pub(super) chunks: Chunks,
    /// Rows that it may still add in this turn.
    pub(super) deficit: usize,
    pub(super) state: SourceState,
    /// True once its client has closed its side: then nothing of it waits for a lock.
    pub(super) closed: bool,
    /// The hash of the table that it begins with, until it has its first outcome.
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

    /// The next of its units.
    pub(super) fn next(&self) -> Option<&Unit> {
        let front = self.chunks.front();
        front.and_then(|chunk| chunk.units.as_slice().first())
    }

    /// Returns the plan of its next units, if they have been under way before.
    pub(super) fn retry(&self) -> Option<RetryPlan> {
        self.chunks.front().and_then(|chunk| chunk.retry)
    }
}

/// The units of one submission that are still to leave.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) ticket: usize,
    /// The index of the next unit in the submission.
    pub(crate) first: usize,
    pub(crate) units: smallvec::IntoIter<[Unit; 1]>,
    pub(crate) arrived: Instant,
    pub(crate) retry: Option<RetryPlan>,
}

/// The plan of units that were rolled back for no fault of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryPlan {
    pub(crate) attempts: u32,
    /// The most rows of the batch that they may be in.
    pub(crate) rows: usize,
    /// Not before this.
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

    /// Takes out those that do not satisfy `keep`.
    pub(super) fn remove(&mut self, keep: impl Fn(&Chunk) -> bool) -> Vec<Chunk> {
        let (kept, removed): (Vec<_>, Vec<_>) = std::iter::from_fn(|| self.pop_front())
            .collect::<Vec<_>>()
            .into_iter()
            .partition(keep);
        kept.into_iter().for_each(|chunk| self.push_back(chunk));
        removed
    }
}
