//! When the next part of an envelope may begin.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set once a request has handed its writes to the lane: what follows it in the same envelope may
/// begin then and is behind it in the lane. A request that never sets it is waited for. All of it
/// lives in one task; it is an atomic only because that task may move between threads.
#[derive(Debug, Default)]
pub(crate) struct Handover(AtomicBool);

impl Handover {
    /// Lets the next one begin.
    pub(crate) fn complete(&self) {
        self.0.store(true, Relaxed);
    }

    /// True once the next one may begin.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.load(Relaxed)
    }
}
