//! The moment at which the next part of an envelope may begin.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set once a request has submitted its writes to the lane: later parts of the same envelope may
/// begin then, and follow it in the lane. A request that never sets it is awaited. All parts run in
/// one task; this is an atomic only because that task may move between threads.
#[derive(Debug, Default)]
pub(crate) struct Handover(AtomicBool);

impl Handover {
    /// Lets the next part begin.
    pub(crate) fn complete(&self) {
        self.0.store(true, Relaxed);
    }

    /// True once the next part may begin.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.load(Relaxed)
    }
}
