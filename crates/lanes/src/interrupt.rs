//! Interrupting what is under way on a connection: the lane asks, the task that owns the connection
//! sees to it.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::sync::watch;
use windrow_core::{Executor, Report, Unit};

use crate::panics::report_of_panic;

/// No flight has this number.
const NOBODY: u64 = u64::MAX;

/// The delay before another request to interrupt the same batch: one that reached the server
/// between two round trips had no effect.
const AGAIN: Duration = Duration::from_millis(100);

/// The lane's end.
#[derive(Debug)]
pub(crate) struct Asker(watch::Sender<u64>);

/// The end of the task that owns a connection.
#[derive(Clone, Debug)]
pub(crate) struct Asked(watch::Receiver<u64>);

/// Both ends.
pub(crate) fn channel() -> (Asker, Asked) {
    let (sender, receiver) = watch::channel(NOBODY);
    (Asker(sender), Asked(receiver))
}

impl Asker {
    /// True if a flight was asked to be given up.
    pub(crate) fn has_asked(&self, flight: u64) -> bool {
        *self.0.borrow() == flight
    }

    /// Asks for a flight to be given up. If it has ended, nothing happens.
    pub(crate) fn ask(&self, flight: u64) {
        self.0.send_replace(flight);
    }
}

impl Asked {
    /// True once a flight is to be given up.
    pub(crate) fn is_for(&self, flight: u64) -> bool {
        *self.0.borrow() == flight
    }

    /// Ends once a flight is to be given up. Cancel safe.
    pub(crate) async fn comes_for(&mut self, flight: u64) {
        // An error says that the lane has ended: then nobody asks any more.
        if self.0.wait_for(|asked| *asked == flight).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Executes a batch, and interrupts it when that is asked for. An executor that panics has
    /// crashed.
    pub(crate) async fn execute(
        &mut self,
        executor: &mut dyn Executor,
        units: &[Unit],
        flight: u64,
    ) -> Report {
        let canceller = executor.canceller();
        let executed = AssertUnwindSafe(executor.execute(units)).catch_unwind();
        let executed =
            executed.map(|report| report.unwrap_or_else(|_| report_of_panic(units.len())));
        let Some(canceller) = canceller else {
            return executed.await;
        };
        let mut executed = pin!(executed);
        if let Either::Left((report, _)) =
            select(executed.as_mut(), pin!(self.comes_for(flight))).await
        {
            return report;
        }
        let mut sure = true;
        loop {
            match select(executed.as_mut(), canceller.cancel()).await {
                // Not before the request is through: the connection's next batch must not meet it.
                Either::Left((mut report, request)) => {
                    sure &= request.await.is_ok();
                    report.usable &= sure;
                    return report;
                }
                Either::Right((Ok(()), _)) => {}
                Either::Right((Err(fault), _)) => {
                    tracing::warn!(%fault, "a cancel request did not reach the database");
                    sure = false;
                }
            }
            let pause = pin!(tokio::time::sleep(AGAIN));
            if let Either::Left((mut report, _)) = select(executed.as_mut(), pause).await {
                report.usable &= sure;
                return report;
            }
        }
    }
}
