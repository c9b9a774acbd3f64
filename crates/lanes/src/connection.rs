//! One connection for batches and the task that owns it: connects, executes one batch after
//! another, says good-bye.

use std::sync::Arc;

use tokio::sync::mpsc;
use windrow_core::sink::Purpose;
use windrow_core::{Executor, FaultClass, Retry, Sink, Verdict};

use crate::failures::Failures;
use crate::interrupt::Asked;
use crate::message::{LandedBatch, Order, Signal, Signals};
use crate::panics::connect;
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
    /// Connects, as often as that takes, and executes what is ordered until the connection or the
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
            self.failures.note(&units, &report.verdicts);
            let (back, spent) = if report.verdicts.iter().all(is_answer) {
                (Vec::new(), units)
            } else {
                (units, Vec::new())
            };
            let landed = LandedBatch {
                units: back,
                report,
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
                // No order comes before there is a connection: this is the end of the lane.
                _ = self.orders.recv() => return None,
            };
            match connected {
                Ok(executor) => return Some(executor),
                Err(fault) if fault.class == FaultClass::Unavailable => {
                    self.say(Signal::Unreachable { connection, fault }).await;
                }
                Err(fault) => {
                    self.say(Signal::Refused { connection, fault }).await;
                    return None;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.delay()) => {}
                _ = self.orders.recv() => return None,
            }
        }
    }

    async fn say(&self, signal: Signal) {
        // An error says that the worker has ended; then nobody waits for this.
        drop(self.signals.send(signal).await);
    }
}

/// False for a unit that may run again.
fn is_answer(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Final(Err(failed)) => failed.fault.retry() != Retry::OutcomeUnknown,
        Verdict::Final(Ok(_)) => true,
        _ => false,
    }
}
