//! One connection and the task that owns it: connects, flies one batch after another, says
//! good-bye.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use windrow_core::sink::Purpose;
use windrow_core::{Executor, Fault, FaultClass, Report, Sink, Unit, UnitOutcome, Verdict};

use crate::interrupt::Asked;
use crate::message::{Landed, Signal, Signals};
use crate::retry::{Backoff, Jitter};

/// A batch to be flown.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) flight: u64,
    pub(crate) units: Vec<Unit>,
}

/// A pilot's end of its channels. It ends when the worker drops the other end of `orders`.
pub(crate) struct Pilot {
    pub(crate) id: u64,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) orders: mpsc::Receiver<Order>,
    pub(crate) asked: Asked,
    pub(crate) signals: Signals,
}

impl Pilot {
    /// Connects, as often as that takes, and flies what is ordered until the connection or the lane
    /// ends.
    pub(crate) async fn run(mut self) {
        let Some(mut executor) = self.connect().await else {
            return;
        };
        let pilot = self.id;
        self.say(Signal::Connected { pilot }).await;
        while let Some(Order { flight, units }) = self.orders.recv().await {
            let report = self.asked.execute(&mut *executor, &units, flight).await;
            let usable = report.usable;
            let told = report
                .verdicts
                .iter()
                .all(|v| matches!(v, Verdict::Told(_)));
            let (back, spent) = if told {
                (Vec::new(), units)
            } else {
                (units, Vec::new())
            };
            let landed = Landed {
                units: back,
                report,
            };
            self.say(Signal::Landed { pilot, landed }).await;
            drop(spent);
            if !usable {
                return;
            }
        }
        executor.close().await;
    }

    async fn connect(&mut self) -> Option<Box<dyn Executor>> {
        let (mut backoff, mut jitter) = (Backoff::new(), Jitter::new());
        let pilot = self.id;
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
                    self.say(Signal::Unreachable { pilot, fault }).await;
                }
                Err(fault) => {
                    self.say(Signal::Refused { pilot, fault }).await;
                    return None;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.pause(&mut jitter)) => {}
                _ = self.orders.recv() => return None,
            }
        }
    }

    async fn say(&self, signal: Signal) {
        // An error says that the worker has ended; then nobody waits for this.
        drop(self.signals.send(signal).await);
    }
}

/// Connects; a sink that panics has refused.
pub(crate) async fn connect(sink: &dyn Sink, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
    let connected = AssertUnwindSafe(sink.connect(purpose)).catch_unwind().await;
    connected.unwrap_or_else(|_| {
        Err(Fault::internal(
            "connecting to the database failed by a defect in Windrow; its log holds the panic",
        ))
    })
}

/// What is said of units whose executor panicked.
pub(crate) fn crashed(units: usize) -> Report {
    Report::broken(units, &Verdict::Told(crash()))
}

/// The outcome of a unit whose executor panicked.
pub(crate) fn crash() -> UnitOutcome {
    let fault = Fault::unknown(
        "executing the batch of this write failed by a defect in Windrow; its log holds the panic",
    );
    Err(fault.into())
}
