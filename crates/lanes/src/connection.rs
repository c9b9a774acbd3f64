//! One connection for batches and the task that owns it. The task connects, executes one batch
//! after another, and closes the connection. A lane asks the task to interrupt the batch under way.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::sync::{mpsc, watch};
use windrow_core::sink::Purpose;
use windrow_core::{Executor, FaultClass, Report, Retry, Sink, Unit, Verdict};

use crate::failures::Failures;
use crate::message::{LandedBatch, Order, Signal, Signals};
use crate::panics::{connect, report_of_panic};
use crate::retry::connect_backoff;

/// The task's end of its channels. It ends when the worker drops the other end of `orders`.
pub(crate) struct BatchConnection {
    pub(crate) id: u64,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) orders: mpsc::Receiver<Order>,
    pub(crate) asked: Asked,
    pub(crate) signals: Signals,
    pub(crate) failures: Failures,
}

impl BatchConnection {
    /// Connects, with as many attempts as needed, and executes orders until the connection or the
    /// lane ends.
    pub(crate) async fn run(mut self) {
        let Some(mut executor) = self.connect().await else {
            return;
        };
        let connection = self.id;
        self.say(Signal::Connected { connection }).await;
        while let Some(Order { flight, units }) = self.orders.recv().await {
            let report = self.asked.execute(&mut *executor, &units, flight).await;
            let usable = report.usable;
            let replayed = self.failures.note(&units, &report.verdicts);
            let (back, spent) = if report.verdicts.iter().all(is_answer) {
                (Vec::new(), units)
            } else {
                (units, Vec::new())
            };
            let landed = LandedBatch {
                units: back,
                report,
                replayed,
            };
            self.say(Signal::Landed { connection, landed }).await;
            drop(spent);
            if !usable {
                return;
            }
        }
        executor.close().await;
    }

    async fn connect(&mut self) -> Option<Box<dyn Executor>> {
        let mut backoff = connect_backoff();
        let connection = self.id;
        loop {
            let sink = self.sink.clone();
            let connected = tokio::select! {
                connected = connect(&*sink, Purpose::Batches) => connected,
                // No order comes before the connection is open: the channel was closed because the
                // lane ends.
                _ = self.orders.recv() => return None,
            };
            match connected {
                Ok(executor) => return Some(executor),
                Err(fault) if fault.class == FaultClass::Unavailable => {
                    self.say(Signal::Unreachable { connection, fault }).await;
                }
                // The worker closes `orders`, unless units remain for which to try again.
                Err(fault) => self.say(Signal::Refused { connection, fault }).await,
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.delay()) => {}
                _ = self.orders.recv() => return None,
            }
        }
    }

    async fn say(&self, signal: Signal) {
        // An error means that the worker has ended, and nobody waits for the signal.
        drop(self.signals.send(signal).await);
    }
}

/// True if the verdict is the client's answer; false if the unit may run again.
fn is_answer(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Final(Err(failed)) => !matches!(
            failed.fault.retry(),
            Retry::OutcomeUnknown | Retry::Smaller | Retry::AfterRepair
        ),
        Verdict::Final(Ok(_)) => true,
        _ => false,
    }
}

/// A number that no flight has.
const NOBODY: u64 = u64::MAX;

/// The delay before the same batch is interrupted again: a request that reached the server between
/// two round trips had no effect.
const AGAIN: Duration = Duration::from_millis(100);

/// The lane's end of the channel by which it interrupts a connection.
#[derive(Debug)]
pub(crate) struct Asker(watch::Sender<u64>);

/// The task's end of the channel by which a lane interrupts a connection.
#[derive(Clone, Debug)]
pub(crate) struct Asked(watch::Receiver<u64>);

/// Returns both ends of a channel by which a lane interrupts a connection.
pub(crate) fn interrupts() -> (Asker, Asked) {
    let (sender, receiver) = watch::channel(NOBODY);
    (Asker(sender), Asked(receiver))
}

impl Asker {
    /// True if the lane has asked to interrupt this flight.
    pub(crate) fn has_asked(&self, flight: u64) -> bool {
        *self.0.borrow() == flight
    }

    /// Asks the task to interrupt a flight. Does nothing if the flight has ended.
    pub(crate) fn ask(&self, flight: u64) {
        self.0.send_replace(flight);
    }
}

impl Asked {
    /// True once the lane has asked to interrupt this flight.
    pub(crate) fn is_for(&self, flight: u64) -> bool {
        *self.0.borrow() == flight
    }

    /// Waits until the lane asks to interrupt this flight. Cancel safe.
    pub(crate) async fn comes_for(&mut self, flight: u64) {
        // An error means that the lane has ended and will not ask.
        if self.0.wait_for(|asked| *asked == flight).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Executes a batch, and interrupts it if the lane asks for that. If the executor panics,
    /// returns the report on a panic.
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
                // Waits until the request to cancel has been sent completely: it must not hit the
                // connection's next batch.
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
