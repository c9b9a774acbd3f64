//! The connection of a source in the background: the drain, a replica's applier, a comparison.
//!
//! Besides a lane, only this type owns an executor. A lane reopens a lost connection by itself and
//! runs its units over any connection. A source in the background must know of each break, because
//! another connection may lead to a database that has lost its last commits. So the connection is
//! opened only when the source asks for it, is dropped when it breaks, and nothing is retried here.

use std::sync::Arc;

use crate::database::Database;
use crate::fault::Fault;
use crate::sink::{Executor, Purpose, Report, Verdict};
use crate::unit::Unit;

/// A connection to a database for one source in the background.
pub struct BackgroundConnection {
    database: Arc<dyn Database>,
    executor: Option<Box<dyn Executor>>,
}

impl BackgroundConnection {
    /// Returns a connection that is not open.
    pub fn new(database: Arc<dyn Database>) -> Self {
        Self {
            database,
            executor: None,
        }
    }

    /// True until the connection breaks or is dropped.
    pub fn is_open(&self) -> bool {
        self.executor.is_some()
    }

    /// Opens the connection, unless it is open. Cancel safe.
    ///
    /// # Errors
    /// As [`Sink::connect`](crate::Sink::connect).
    pub async fn open(&mut self) -> Result<(), Fault> {
        if self.executor.is_none() {
            self.executor = Some(self.database.connect(Purpose::Batches).await?);
        }
        Ok(())
    }

    /// Executes units as one batch. If the connection breaks, or the future is dropped before its
    /// end, the connection is closed. Not cancel safe: outcomes stay unknown then.
    pub async fn execute(&mut self, units: &[Unit]) -> Report {
        let Some(mut executor) = self.executor.take() else {
            let lost = Fault::unavailable("the connection was lost; nothing was written");
            return Report::broken(units.len(), &Verdict::RolledBack(lost));
        };
        let report = executor.execute(units).await;
        if report.usable {
            self.executor = Some(executor);
        }
        report
    }

    /// Drops the connection, whatever it is doing.
    pub fn discard(&mut self) {
        self.executor = None;
    }

    /// Ends the connection, if it is open.
    pub async fn close(&mut self) {
        if let Some(executor) = self.executor.take() {
            executor.close().await;
        }
    }
}
