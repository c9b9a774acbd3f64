//! Starts the execution of requests with keys, and the removal of old keys.

use std::sync::Arc;

use anyhow::ensure;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windrow_core::{Bookkeeping, Database, Intake};
use windrow_idempotency::{Keys, sweep};

use crate::settings::Settings;

/// Keys that are kept in the database until they are old.
pub(super) struct RunningKeys {
    keys: Keys,
    stop: CancellationToken,
    sweeping: JoinHandle<()>,
}

impl RunningKeys {
    /// Starts it for the writes of a lane. `None` for a database that cannot keep keys.
    ///
    /// # Errors
    /// All writes must have keys, and the database cannot keep them.
    pub(super) fn start(
        database: &dyn Database,
        lane: &Intake,
        settings: &Settings,
    ) -> anyhow::Result<Option<Self>> {
        let Some(tables) = Self::tables(database, settings)? else {
            return Ok(None);
        };
        let stop = CancellationToken::new();
        let keys = Keys::new(lane.clone(), Arc::clone(&tables));
        let keep = settings.idempotency_keep;
        Ok(Some(Self {
            keys: keys.for_all(settings.certain_outcomes),
            sweeping: tokio::spawn(sweep(tables, keep, stop.clone())),
            stop,
        }))
    }

    /// Returns the tables of keys; `None` for a database that cannot keep them.
    ///
    /// # Errors
    /// All writes must have keys, and the database cannot keep them.
    pub(super) fn tables(
        database: &dyn Database,
        settings: &Settings,
    ) -> anyhow::Result<Option<Arc<dyn Bookkeeping>>> {
        let tables = database.bookkeeping();
        ensure!(
            tables.is_some() || !settings.certain_outcomes,
            "database.certain_outcomes needs a database with transactions, and this one has none; leave it out"
        );
        Ok(tables)
    }

    /// Returns the executor of requests with keys.
    pub(super) fn keys(&self) -> Keys {
        self.keys.clone()
    }

    /// Ends the removal of old keys.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        // A panic was reported when it happened.
        drop(self.sweeping.await);
    }
}
