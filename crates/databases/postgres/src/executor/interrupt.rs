//! Giving a connection's batch up, from outside of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::{Canceller, Fault};
use windrow_pgwire::wire::{CancelKey, Wire};

/// How long a cancel request may take on its way to the server.
const PATIENCE: Duration = Duration::from_secs(10);

/// The right to interrupt a connection's batch.
#[derive(Debug)]
pub(crate) struct Interrupt {
    key: Mutex<CancelKey>,
    /// A request that comes between two round trips meets nothing on the server: the connection
    /// looks here before each.
    asked: AtomicBool,
}

impl Interrupt {
    pub(crate) fn of(wire: &Wire) -> Arc<Self> {
        Arc::new(Self {
            key: Mutex::new(wire.cancel_key()),
            asked: AtomicBool::new(false),
        })
    }

    /// Another connection has taken the place of the one before.
    pub(crate) fn moved_to(&self, wire: &Wire) {
        *self.key() = wire.cancel_key();
    }

    fn key(&self) -> MutexGuard<'_, CancelKey> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch begins: what was asked before is not about it.
    pub(crate) fn begin(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// True once the batch is to be given up.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Canceller for Interrupt {
    async fn cancel(&self) -> Result<(), Fault> {
        self.asked.store(true, Ordering::Relaxed);
        let key = self.key().clone();
        let sent = key.send(PATIENCE).await;
        sent.map_err(|error| Fault::unavailable(error.to_string()))
    }
}
