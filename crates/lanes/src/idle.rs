//! The time for which a lane has had nothing to do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The time since which a lane is idle, written by its worker and read by its handles.
#[derive(Debug)]
pub(crate) struct IdleNote {
    started: Instant,
    /// Nanoseconds between the start and the moment at which the lane became idle; [`BUSY`] while
    /// it has something to do.
    since: AtomicU64,
}

const BUSY: u64 = u64::MAX;

impl IdleNote {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            since: AtomicU64::new(0),
        }
    }

    /// Notes if the lane has something to do. Cheap if nothing has changed.
    pub(crate) fn set(&self, busy: bool) {
        if busy == (self.since.load(Ordering::Relaxed) == BUSY) {
            return;
        }
        let since = if busy {
            BUSY
        } else {
            u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(BUSY - 1)
        };
        self.since.store(since, Ordering::Relaxed);
    }

    /// Returns how long the lane has been idle; `None` while it has something to do.
    pub(crate) fn lasts(&self) -> Option<Duration> {
        let since = match self.since.load(Ordering::Relaxed) {
            BUSY => return None,
            since => Duration::from_nanos(since),
        };
        Some(self.started.elapsed().saturating_sub(since))
    }
}
