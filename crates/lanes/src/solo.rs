//! Units that wait for a lock held by somebody else, run one after another on a connection of their own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Executor, Fault, FaultClass, Sink, Unit, UnitOutcome, Verdict};

use crate::message::{Signal, Signals};
use crate::pilot::{connect, crash};
use crate::retry::{Backoff, Jitter, MAX_ATTEMPTS, rest};

/// Units of one source that run alone.
pub(crate) struct Solo {
    pub(crate) flight: u64,
    pub(crate) units: Vec<Unit>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) signals: Signals,
    /// How long to wait for a database that cannot be reached.
    pub(crate) away_wait: Duration,
}

impl Solo {
    pub(crate) async fn run(self) {
        let mut executor = None;
        let mut outcomes = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            outcomes.push(self.outcome(&mut executor, unit).await);
        }
        let flight = self.flight;
        // An error says that the worker has ended; then nobody waits for this.
        drop(self.signals.send(Signal::Alone { flight, outcomes }).await);
        if let Some(executor) = executor {
            executor.close().await;
        }
    }

    async fn outcome(&self, slot: &mut Option<Box<dyn Executor>>, unit: &Unit) -> UnitOutcome {
        let mut jitter = Jitter::new();
        let mut attempts = 0;
        loop {
            let mut executor = match slot.take() {
                Some(executor) => executor,
                None => self.connect(&mut jitter).await?,
            };
            let units = std::slice::from_ref(unit);
            let flown = AssertUnwindSafe(executor.execute(units)).catch_unwind();
            let Ok(mut report) = flown.await else {
                return crash();
            };
            if report.usable {
                *slot = Some(executor);
            }
            attempts += 1;
            match report.verdicts.pop() {
                Some(Verdict::Told(outcome)) => return outcome,
                // It was to wait as long as it would have waited: this is what it would have been told.
                Some(Verdict::Alone(fault)) => return Err(fault.into()),
                Some(Verdict::Again(fault)) if attempts >= MAX_ATTEMPTS => return Err(fault.into()),
                // One that is alone has nobody to wait for: a sink that says so is not believed for ever.
                Some(Verdict::Held) if attempts >= MAX_ATTEMPTS => return crash(),
                Some(Verdict::Again(_) | Verdict::Held) => {}
                None => return crash(),
            }
            if let Some(pause) = rest(attempts, &mut jitter) {
                tokio::time::sleep(pause).await;
            }
        }
    }

    async fn connect(&self, jitter: &mut Jitter) -> Result<Box<dyn Executor>, Fault> {
        let (since, mut backoff) = (Instant::now(), Backoff::new());
        loop {
            match connect(&*self.sink, Purpose::Alone).await {
                Err(fault) if fault.class == FaultClass::Unavailable => {
                    if since.elapsed() >= self.away_wait {
                        return Err(unavailable(&fault, self.away_wait));
                    }
                }
                connected => return connected,
            }
            tokio::time::sleep(backoff.pause(jitter)).await;
        }
    }
}

/// What units are told that have waited in vain for a database that cannot be reached.
pub(crate) fn unavailable(fault: &Fault, away_wait: Duration) -> Fault {
    let mut told = fault.clone();
    told.message = format!(
        "the database cannot be reached; nothing was written (it was waited for as long as limits.away_wait = {} ms allows): {}",
        away_wait.as_millis(),
        fault.message
    )
    .into();
    told
}
