//! State that the parts of one connection share: the state of its socket, of the request under way,
//! and of its answer.
//!
//! All of them run in one task, so relaxed atomics suffice; they are atomics only because that task
//! may move between threads. No clock is read for a request: progress changes a stamp, and the
//! connection's watch checks periodically whether it has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The activity of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Between requests.
    Idle = 0,
    /// A part of a request's head has arrived.
    Head = 1,
    /// A request waits for more of its body.
    Body = 2,
    /// A request is being executed.
    Busy = 3,
    /// The answer is being written, piece by piece.
    Answering = 4,
}

/// Shared by the parts of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    phase: AtomicU8,
    stamp: AtomicU32,
    late: AtomicBool,
    stalled: AtomicBool,
    unread: AtomicBool,
    /// The bytes of bodies that have arrived, and of everything that was sent.
    moved: AtomicU64,
    /// True if the body under way holds memory until it is complete.
    holds: AtomicBool,
    /// True if the body under way must end because other clients need its memory.
    given_up: AtomicBool,
    /// True if the answer being sent takes memory from the budget for answers.
    takes_room: AtomicBool,
}

impl ConnectionState {
    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Idle,
            1 => Phase::Head,
            2 => Phase::Body,
            3 => Phase::Busy,
            _ => Phase::Answering,
        }
    }

    /// Changes the phase. Staying in a phase is no progress.
    pub(crate) fn enter(&self, phase: Phase) {
        if self.phase.swap(phase as u8, Relaxed) != phase as u8 {
            self.late.store(false, Relaxed);
            self.progress();
        }
    }

    /// Notes that bytes have arrived or were sent.
    pub(crate) fn progress(&self) {
        self.stamp
            .store(self.stamp.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Returns a number that changes with all progress.
    pub(crate) fn stamp(&self) -> u32 {
        self.stamp.load(Relaxed)
    }

    /// Notes that bytes have arrived from the client.
    pub(crate) fn received(&self) {
        if self.phase() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Notes whether the client reads what is sent.
    pub(crate) fn set_stalled(&self, stalled: bool) {
        self.stalled.store(stalled, Relaxed);
    }

    /// True while the client does not read what is sent.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Relaxed)
    }

    /// Notes bytes of a body that have arrived, or of an answer that were sent.
    pub(crate) fn moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Relaxed);
    }

    /// Returns the bytes of bodies that have arrived, and of answers that were sent.
    pub(crate) fn moved_in_all(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    /// Notes whether the body under way holds memory until it is complete.
    pub(crate) fn set_holds(&self, holds: bool) {
        self.holds.store(holds, Relaxed);
        if !holds {
            self.given_up.store(false, Relaxed);
        }
    }

    /// True if the body under way holds memory until it is complete.
    pub(crate) fn holds_memory(&self) -> bool {
        self.holds.load(Relaxed)
    }

    /// True once the body under way must end: it holds memory that others need, and does not
    /// arrive.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }

    /// Ends the body under way.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Relaxed);
    }

    /// Notes that the rest of a body will not be read.
    pub(crate) fn leave_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// True if a part of a body was not read.
    pub(crate) fn has_unread(&self) -> bool {
        self.unread.load(Relaxed)
    }

    /// True while an answer is being sent that takes memory from the budget for answers.
    pub(crate) fn takes_room(&self) -> bool {
        self.phase() == Phase::Answering && self.takes_room.load(Relaxed)
    }

    /// True while a part of an answer is not written.
    pub(crate) fn is_answering(&self) -> bool {
        self.phase() == Phase::Answering || self.is_stalled()
    }

    /// True while a request has no answer yet.
    pub(crate) fn in_request(&self) -> bool {
        matches!(self.phase(), Phase::Body | Phase::Busy)
    }

    /// True once the awaited body has made no progress for too long.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Relaxed)
    }

    /// Notes that the awaited body has made no progress for too long.
    pub(crate) fn set_late(&self) {
        self.late.store(true, Relaxed);
    }
}

/// An answer that is written piece by piece; dropped with its last piece.
#[derive(Debug)]
pub(crate) struct Answering(Arc<ConnectionState>);

impl Answering {
    pub(crate) fn new(state: Arc<ConnectionState>, takes_room: bool) -> Self {
        state.enter(Phase::Answering);
        state.takes_room.store(takes_room, Relaxed);
        Self(state)
    }

    /// Begins an answer that continues until its client leaves. Its request is under way all that
    /// time, so that a client that has left is noticed. It holds no memory that others may need.
    pub(crate) fn live(state: Arc<ConnectionState>) -> Self {
        state.enter(Phase::Busy);
        Self(state)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.enter(Phase::Idle);
    }
}
