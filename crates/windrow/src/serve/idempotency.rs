//! Requests with keys, wired: what executes them once, and what forgets their keys.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windrow_core::{Database, Intake, RowWrite};
use windrow_idempotency::{Keys, sweep};

/// Keys that are kept in the database, and forgotten once they are old.
pub(super) struct RunningKeys {
    keys: Keys,
    stop: CancellationToken,
    sweeping: JoinHandle<()>,
}

impl RunningKeys {
    /// For the writes of a lane; `None` for a database that cannot keep keys.
    pub(super) fn start(
        database: &dyn Database,
        lane: &Intake<RowWrite>,
        keep: Duration,
    ) -> Option<Self> {
        let tables = database.bookkeeping()?;
        let stop = CancellationToken::new();
        Some(Self {
            keys: Keys::new(lane.clone(), Arc::clone(&tables)),
            sweeping: tokio::spawn(sweep(tables, keep, stop.clone())),
            stop,
        })
    }

    /// What frontends hand requests with keys to.
    pub(super) fn keys(&self) -> Keys {
        self.keys.clone()
    }

    /// Forgets nothing any more.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        // It has failed where it panicked, which is told where it happens.
        drop(self.sweeping.await);
    }
}
