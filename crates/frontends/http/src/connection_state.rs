//! State that the parts of one connection share: of its socket, of the request under way and of its
//! answer.
//!
//! All of them live in one task, so plain relaxed atomics do; they are atomics only because that
//! task may move between threads. No clock is read on the path of a request: progress changes a
//! stamp, and the watch over the connection looks now and then whether it has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The activity of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Between requests.
    Idle = 0,
    /// Some bytes of a request's head are there.
    Head = 1,
    /// A request waits for more of its body.
    Body = 2,
    /// A request is being worked on.
    Busy = 3,
    /// The answer is written piece by piece.
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
    /// Bytes of bodies that have come, and of anything that has left.
    moved: AtomicU64,
    /// The body under way holds memory until the rest of it is there.
    holds: AtomicBool,
    /// True if the body under way is to be given up because other clients need its memory.
    given_up: AtomicBool,
    /// The answer that is sent takes room for answers.
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

    /// Changes the phase; staying in one is no progress.
    pub(crate) fn enter(&self, phase: Phase) {
        if self.phase.swap(phase as u8, Relaxed) != phase as u8 {
            self.late.store(false, Relaxed);
            self.progress();
        }
    }

    /// Something came or went.
    pub(crate) fn progress(&self) {
        self.stamp
            .store(self.stamp.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Changes with all progress.
    pub(crate) fn stamp(&self) -> u32 {
        self.stamp.load(Relaxed)
    }

    /// Bytes arrived from the client.
    pub(crate) fn received(&self) {
        if self.phase() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Notes if the client does not take the bytes that are sent.
    pub(crate) fn set_stalled(&self, stalled: bool) {
        self.stalled.store(stalled, Relaxed);
    }

    /// True while the client does not take what is sent.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Relaxed)
    }

    /// Bytes of a body came, or some of an answer left.
    pub(crate) fn moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Relaxed);
    }

    /// Returns all bytes of bodies that have come, and of answers that have left.
    pub(crate) fn moved_in_all(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    /// Notes if the body under way holds memory until the rest of it is there.
    pub(crate) fn set_holds(&self, holds: bool) {
        self.holds.store(holds, Relaxed);
        if !holds {
            self.given_up.store(false, Relaxed);
        }
    }

    /// True if the body under way holds memory until the rest of it is there.
    pub(crate) fn holds_memory(&self) -> bool {
        self.holds.load(Relaxed)
    }

    /// True once the body under way is to be given up: it holds memory that others want, and does
    /// not come.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }

    /// Gives the body under way up.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Relaxed);
    }

    /// Says that the rest of a body will not be read.
    pub(crate) fn leave_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// True if some of a body was not read.
    pub(crate) fn has_unread(&self) -> bool {
        self.unread.load(Relaxed)
    }

    /// True while an answer is sent that takes room for answers.
    pub(crate) fn takes_room(&self) -> bool {
        self.phase() == Phase::Answering && self.takes_room.load(Relaxed)
    }

    /// True while some of an answer is not written.
    pub(crate) fn is_answering(&self) -> bool {
        self.phase() == Phase::Answering || self.is_stalled()
    }

    /// True while a request is under way that has no answer yet.
    pub(crate) fn in_request(&self) -> bool {
        matches!(self.phase(), Phase::Body | Phase::Busy)
    }

    /// True once the body that is waited for has made no progress for too long.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Relaxed)
    }

    /// Says that the body that is waited for has made no progress for too long.
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

    /// Makes an answer that goes on until its client leaves: its request is under way for as long,
    /// so that a client that has left is seen, and it holds no memory that others may want.
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
