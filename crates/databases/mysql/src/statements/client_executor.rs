//! Executes the batches of a lane. A unit by itself commits by itself; several are one transaction.
//! Called by the lane; it never holds units back.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::{Canceller, Executor, Fault, Report, Tally, Unit, Verdict};

use super::attempt::{Attempted, attempt};
use super::client_batch::ClientBatch;
use super::client_connection::{ClientConnection, Stop};
use super::lone::lone;
use crate::fault::unavailable;

/// Attempts to commit units together. After that each is executed by itself.
const MAX_ATTEMPTS: usize = 6;

impl ClientConnection {
    async fn drive(&mut self, batch: &mut ClientBatch<'_>, tally: &mut Tally) -> Result<(), Stop> {
        self.wake().await?;
        let mut singles = HashSet::new();
        for _ in 0..MAX_ATTEMPTS {
            let open = batch.open_units();
            if open.len() <= 1 || open.iter().any(|unit| batch.is_retired(*unit)) {
                break;
            }
            match attempt(self, batch, &open, &singles, tally).await? {
                Attempted::Committed => return Ok(()),
                Attempted::RolledBack { singles: more } => singles.extend(more),
            }
        }
        for unit in batch.open_units() {
            // A unit that must run again concludes its followers.
            if batch.open_units().contains(&unit) {
                lone(self, batch, unit, tally).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Executor for ClientConnection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut batch = ClientBatch::new(units, &self.catalog);
        let mut tally = Tally::default();
        self.session.prepared.begin();
        // Units without a verdict were not committed.
        match self.drive(&mut batch, &mut tally).await {
            Ok(()) => {}
            Err(Stop::Lost(why)) => {
                self.session.give_up();
                batch.conclude_rest(&Verdict::RolledBack(unavailable(&why)));
            }
            Err(Stop::Ended(fault)) => {
                self.session.give_up();
                batch.conclude_rest(&Verdict::RolledBack(fault));
            }
        }
        let defect = Verdict::Final(Err(Fault::internal("a unit got no verdict").into()));
        batch.conclude_rest(&defect);
        self.session.settle(&mut tally);
        let usable = self.session.is_usable() && !self.interrupt.was_asked() && !self.is_spoiled;
        Report {
            verdicts: batch.into_verdicts(),
            tally,
            usable,
        }
    }

    fn arrived(&mut self, at: Instant) {
        self.arrived = Some(at);
    }

    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        Some(Arc::clone(&self.interrupt) as Arc<dyn Canceller>)
    }

    async fn close(self: Box<Self>) {
        self.session.close().await;
    }
}
