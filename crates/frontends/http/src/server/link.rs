//! What one connection's parts know of each other: the socket's gate, the request under way, and
//! the watch over both.
//!
//! All of them live in one task, so plain relaxed atomics do; they are atomics only because that
//! task may move between threads. No clock is read on the path of a request: progress changes a
//! stamp, and the watch looks now and then whether it has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::config::HttpConfig;

/// How long a client that holds memory may take to bring, or to take, a little, while others want
/// memory.
const PATIENCE: Duration = Duration::from_secs(10);

/// What has to move in that time, in bytes.
const STEP: u64 = 64 << 10;

/// What the connection is doing.
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
    /// Its answer is written piece by piece.
    Answering = 4,
}

/// Shared by the parts of one connection.
#[derive(Debug, Default)]
pub(crate) struct Link {
    phase: AtomicU8,
    stamp: AtomicU32,
    late: AtomicBool,
    stalled: AtomicBool,
    unread: AtomicBool,
    /// Bytes of bodies that have come, and of anything that has left.
    moved: AtomicU64,
    /// The body under way holds memory until the rest of it is there.
    holds: AtomicBool,
    /// It is to be given up for the sake of others.
    hoards: AtomicBool,
}

impl Link {
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

    /// Bytes arrived from the client.
    pub(crate) fn received(&self) {
        if self.phase() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Whether the client does not take what is sent.
    pub(crate) fn set_stalled(&self, stalled: bool) {
        self.stalled.store(stalled, Relaxed);
    }

    /// Bytes of a body came, or some of an answer left.
    pub(crate) fn moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Relaxed);
    }

    /// Whether the body under way holds memory until the rest of it is there.
    pub(crate) fn set_holds(&self, holds: bool) {
        self.holds.store(holds, Relaxed);
        if !holds {
            self.hoards.store(false, Relaxed);
        }
    }

    /// True once the body under way is to be given up: it holds memory that others want, and does
    /// not come.
    pub(crate) fn hoards(&self) -> bool {
        self.hoards.load(Relaxed)
    }

    /// Says that the rest of a body will not be read.
    pub(crate) fn leave_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// True where some of a body was not read.
    pub(crate) fn has_unread(&self) -> bool {
        self.unread.load(Relaxed)
    }

    /// True while some of an answer is not written.
    pub(crate) fn is_answering(&self) -> bool {
        self.phase() == Phase::Answering || self.stalled.load(Relaxed)
    }

    /// True while a request is under way that has no answer yet.
    pub(crate) fn in_request(&self) -> bool {
        matches!(self.phase(), Phase::Body | Phase::Busy)
    }

    /// True once the body that is waited for has made no progress for too long.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Relaxed)
    }

    fn set_late(&self) {
        self.late.store(true, Relaxed);
    }
}

/// An answer that is written piece by piece; dropped with its last piece.
#[derive(Debug)]
pub(crate) struct Answering(Arc<Link>);

impl Answering {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        link.enter(Phase::Answering);
        Self(link)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.enter(Phase::Idle);
    }
}

/// What the watch wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Nothing.
    Keep,
    /// An idle connection is to be closed.
    Retire,
    /// A head did not come in time.
    SlowHead,
    /// The client does not read.
    Drop,
}

/// Looks at a [`Link`] in steps of a period. A limit is kept to within one period.
#[derive(Debug)]
pub(crate) struct Watch {
    period: Duration,
    quiet: Duration,
    stamp: u32,
    head: Duration,
    body: Duration,
    idle: Duration,
    /// Since when a client that holds memory is looked at, and what had moved by then.
    held: Duration,
    moved: u64,
}

impl Watch {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let (head, body, idle) = (
            config.header_timeout,
            config.body_timeout,
            config.idle_timeout,
        );
        let shortest = head.min(body).min(idle).min(PATIENCE);
        let period = (shortest / 2).max(Duration::from_millis(1));
        Self {
            period,
            quiet: Duration::ZERO,
            stamp: 0,
            head,
            body,
            idle,
            held: Duration::ZERO,
            moved: 0,
        }
    }

    /// Time between two looks.
    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    /// One look, a period after the last. `wanted`: others want memory.
    pub(crate) fn look(&mut self, link: &Link, wanted: bool) -> Ruling {
        if self.crawls(link) && wanted {
            if link.phase() == Phase::Answering {
                return Ruling::Drop;
            }
            link.hoards.store(true, Relaxed);
        }
        let stamp = link.stamp.load(Relaxed);
        if stamp != self.stamp {
            self.stamp = stamp;
            self.quiet = Duration::ZERO;
            return Ruling::Keep;
        }
        self.quiet += self.period;
        if link.stalled.load(Relaxed) && self.quiet >= self.body {
            return Ruling::Drop;
        }
        match link.phase() {
            Phase::Idle if self.quiet >= self.idle => Ruling::Retire,
            Phase::Head if self.quiet >= self.head => Ruling::SlowHead,
            Phase::Body if self.quiet >= self.body => {
                link.set_late();
                Ruling::Keep
            }
            _ => Ruling::Keep,
        }
    }

    /// True where a client that holds memory, with its body or for its answer, has moved too little
    /// for too long.
    fn crawls(&mut self, link: &Link) -> bool {
        let moved = link.moved.load(Relaxed);
        let holds = link.holds.load(Relaxed) || link.phase() == Phase::Answering;
        if !holds || moved >= self.moved + STEP {
            (self.held, self.moved) = (Duration::ZERO, moved);
            return false;
        }
        self.held += self.period;
        self.held >= PATIENCE.min(self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        Watch::new(&HttpConfig {
            header_timeout: Duration::from_secs(2),
            body_timeout: Duration::from_secs(4),
            idle_timeout: Duration::from_secs(8),
            ..HttpConfig::default()
        })
    }

    fn looks_until(ruling: Ruling, watch: &mut Watch, link: &Link) -> Option<u32> {
        (1..100).find(|_| watch.look(link, false) == ruling)
    }

    #[test]
    fn each_phase_has_its_own_patience() {
        let link = Link::default();
        let mut watch = watch();
        assert_eq!(watch.period(), Duration::from_secs(1));
        assert_eq!(looks_until(Ruling::Retire, &mut watch, &link), Some(8));
        link.received();
        assert_eq!(looks_until(Ruling::SlowHead, &mut watch, &link), Some(3));
        link.enter(Phase::Busy);
        assert_eq!(looks_until(Ruling::Drop, &mut watch, &link), None);
        assert!(!link.is_late());
        link.enter(Phase::Body);
        for _ in 0..5 {
            assert_eq!(watch.look(&link, false), Ruling::Keep);
        }
        assert!(link.is_late());
    }

    #[test]
    fn progress_buys_time_but_a_trickle_of_head_bytes_does_not() {
        let link = Link::default();
        let mut watch = watch();
        link.enter(Phase::Body);
        for _ in 0..50 {
            link.progress();
            watch.look(&link, false);
            watch.look(&link, false);
        }
        assert!(!link.is_late());
        link.enter(Phase::Idle);
        link.received();
        watch.look(&link, false);
        link.received();
        watch.look(&link, false);
        link.received();
        assert_eq!(watch.look(&link, false), Ruling::SlowHead);
    }

    #[test]
    fn a_client_that_does_not_read_is_dropped() {
        let link = Link::default();
        let mut watch = watch();
        link.enter(Phase::Busy);
        link.set_stalled(true);
        assert_eq!(looks_until(Ruling::Drop, &mut watch, &link), Some(5));
    }

    #[test]
    fn who_holds_memory_that_others_want_has_to_get_on() {
        let link = Link::default();
        let mut watch = watch();
        let mut looks = |link: &Link, wanted: bool, moved: usize| {
            for _ in 0..30 {
                link.moved(moved);
                link.progress();
                if watch.look(link, wanted) == Ruling::Drop || link.hoards() {
                    return true;
                }
            }
            false
        };
        link.enter(Phase::Body);
        assert!(!looks(&link, true, 1), "it holds nothing");
        link.set_holds(true);
        assert!(!looks(&link, false, 1), "nobody wants it");
        assert!(!looks(&link, true, 1 << 16), "it comes");
        assert!(looks(&link, true, 1));
        link.set_holds(false);
        assert!(!link.hoards());
        link.enter(Phase::Answering);
        assert!(looks(&link, true, 1), "it is not taken");
    }
}
