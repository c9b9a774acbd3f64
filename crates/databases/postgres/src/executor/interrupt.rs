//! Cancels a connection's batch from outside the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use windrow_core::{Canceller, Fault};
use windrow_pgwire::wire::{CancelKey, Wire};

/// Timeout of a cancel request on its way to the server.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// The handle that cancels a connection's batch.
#[derive(Debug)]
pub(crate) struct Interrupt {
    key: Mutex<CancelKey>,
    /// True once the batch is cancelled. Checked before each round trip, because a cancel request
    /// between two round trips finds no statement to cancel on the server.
    asked: AtomicBool,
}

impl Interrupt {
    pub(crate) fn of(wire: &Wire) -> Arc<Self> {
        Arc::new(Self {
            key: Mutex::new(wire.cancel_key()),
            asked: AtomicBool::new(false),
        })
    }

    /// Records the cancel key of the connection that has replaced the previous one.
    pub(crate) fn moved_to(&self, wire: &Wire) {
        *self.key.lock() = wire.cancel_key();
    }

    /// Begins a batch: drops a cancel request for the previous one.
    pub(crate) fn begin(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Returns true once the batch is cancelled.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Canceller for Interrupt {
    async fn cancel(&self) -> Result<(), Fault> {
        self.asked.store(true, Ordering::Relaxed);
        let key = self.key.lock().clone();
        let sent = key.send(CANCEL_TIMEOUT).await;
        sent.map_err(|error| Fault::unavailable(error.to_string()))
    }
}
