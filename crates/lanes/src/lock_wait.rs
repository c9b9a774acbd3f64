//! A connection for units that wait for another session's lock, one unit at a time, and the task
//! that owns it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Executor, Fault, FaultClass, Retry, Sink, UnitFault, UnitOutcome, Verdict};

use crate::away::waited_in_vain;
use crate::connection::Asked;
use crate::message::{LockWaitOrder, Signal, Signals};
use crate::panics::{connect, outcome_of_panic};
use crate::retry::{MAX_ATTEMPTS, conflict_backoff, connect_backoff, unknown_backoff};

/// The time for which an unused connection is kept.
const KEPT: Duration = Duration::from_secs(5);

/// The SQLSTATE of a server that has no capacity for another connection.
const NO_ROOM: &str = "53300";

/// The task's end of its channels. The task ends when the worker drops the other end of `orders`,
/// or has sent no order for [`KEPT`].
pub(crate) struct LockWaitConnection {
    pub(crate) id: u64,
    pub(crate) orders: mpsc::Receiver<LockWaitOrder>,
    pub(crate) asked: Asked,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) signals: Signals,
    /// The time for which units wait for a database that cannot be reached.
    pub(crate) away_wait: Duration,
}

/// The reason why a unit has no connection.
enum ConnectFailure {
    Failed(Fault),
    /// The server has no capacity for another connection.
    NoRoom,
}

impl LockWaitConnection {
    pub(crate) async fn run(mut self) {
        let mut executor = None;
        while let Some(order) = self.next().await {
            let connection = self.id;
            let signal = match self.outcome(&mut executor, &order).await {
                Ok(outcome) => Signal::LockWaitEnded {
                    connection,
                    outcome,
                },
                Err(()) => Signal::NoRoom { connection, order },
            };
            // An error means that the worker has ended, and nobody waits for the signal.
            drop(self.signals.send(signal).await);
        }
        if let Some(executor) = executor {
            executor.close().await;
        }
    }

    /// Returns the next unit; `None` if none comes within [`KEPT`].
    async fn next(&mut self) -> Option<LockWaitOrder> {
        match tokio::time::timeout(KEPT, self.orders.recv()).await {
            Ok(order) => order,
            Err(_) => {
                // An order that arrives at this moment is still executed; the worker sends later
                // ones to other connections.
                self.orders.close();
                self.orders.recv().await
            }
        }
    }

    /// Returns the outcome of a unit. An error means that the server had no capacity for a
    /// connection.
    async fn outcome(
        &mut self,
        slot: &mut Option<Box<dyn Executor>>,
        order: &LockWaitOrder,
    ) -> Result<UnitOutcome, ()> {
        let (mut backoff, mut unknown) = (conflict_backoff(), None);
        loop {
            let mut executor = match slot.take() {
                Some(executor) => executor,
                None => match self.connect(order).await {
                    Ok(executor) => executor,
                    Err(ConnectFailure::Failed(fault)) => {
                        return Ok(Err(unknown.unwrap_or(fault).into()));
                    }
                    Err(ConnectFailure::NoRoom) => return Err(()),
                },
            };
            if self.asked.is_for(order.number) {
                *slot = Some(executor);
                let fault = unknown.unwrap_or_else(Fault::called_back);
                return Ok(Err(fault.into()));
            }
            // Each attempt of a persistent unit gets all of its role's time limits.
            executor.arrived(match order.policy.is_persistent() {
                true => Instant::now(),
                false => order.arrived,
            });
            let units = std::slice::from_ref(&order.unit);
            let mut report = self
                .asked
                .execute(&mut *executor, units, order.number)
                .await;
            if report.usable {
                *slot = Some(executor);
            }
            let mut delay = backoff.delay();
            let verdict = report.verdicts.pop();
            match self.judge(order, verdict, backoff.failures()) {
                Some(Err(failed)) if self.outlasts(order, &failed.fault) => {
                    delay = unknown_backoff().delay_after(backoff.failures());
                    if failed.fault.retry() == Retry::OutcomeUnknown {
                        unknown = Some(failed.fault);
                    }
                }
                // The rollback of this attempt says nothing about the one before.
                Some(Err(failed)) if failed.fault.may_retry() => {
                    return Ok(Err(unknown.map_or(failed, UnitFault::from)));
                }
                Some(outcome) => return Ok(outcome),
                None => {}
            }
            if !delay.is_zero() {
                tokio::select! {
                    () = tokio::time::sleep(delay) => {}
                    () = self.asked.comes_for(order.number) => {}
                }
            }
        }
    }

    /// Returns the outcome of the unit; `None` if it runs again.
    fn judge(
        &self,
        order: &LockWaitOrder,
        verdict: Option<Verdict>,
        attempts: u32,
    ) -> Option<UnitOutcome> {
        let called_back = self.asked.is_for(order.number);
        match verdict {
            Some(Verdict::Final(outcome)) => Some(outcome),
            Some(_) if called_back => Some(Err(Fault::called_back().into())),
            // The unit has waited as long as its client's session would have: answer what the
            // server answered.
            Some(Verdict::WaitsForLock(fault)) if !order.policy.is_background() => {
                Some(Err(fault.into()))
            }
            Some(Verdict::WaitsForLock(fault) | Verdict::RolledBack(fault)) => {
                let (waited, usual) = (order.arrived.elapsed(), self.away_wait);
                let again = order.policy.allows(fault.retry(), attempts, waited, usual);
                (!again).then(|| Err(fault.into()))
            }
            // A unit that runs alone has no other unit to wait for. A sink that goes on saying so
            // is not believed.
            Some(Verdict::NotTried) if attempts >= MAX_ATTEMPTS => Some(outcome_of_panic()),
            Some(Verdict::NotTried) => None,
            None => Some(outcome_of_panic()),
        }
    }

    /// True if the unit runs again after a fault that would otherwise be its client's answer.
    fn outlasts(&self, order: &LockWaitOrder, fault: &Fault) -> bool {
        let retry = fault.retry();
        order.policy.outlasts(retry, order.arrived.elapsed())
            && (retry == Retry::OutcomeUnknown || !self.asked.is_for(order.number))
    }

    /// Connects, for as long as the unit may wait for that.
    async fn connect(
        &mut self,
        order: &LockWaitOrder,
    ) -> Result<Box<dyn Executor>, ConnectFailure> {
        let sink = Arc::clone(&self.sink);
        let away_wait = order.policy.away_wait(self.away_wait);
        let late = sink
            .statement_timeout()
            .filter(|_| !order.policy.is_persistent())
            .and_then(|limit| order.arrived.checked_add(limit));
        let late = async {
            match late {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            connected = keep_connecting(&*sink, away_wait, order) => connected,
            () = self.asked.comes_for(order.number) => Err(ConnectFailure::Failed(Fault::called_back())),
            () = late => Err(ConnectFailure::Failed(Fault::late())),
        }
    }
}

async fn keep_connecting(
    sink: &dyn Sink,
    away_wait: Duration,
    order: &LockWaitOrder,
) -> Result<Box<dyn Executor>, ConnectFailure> {
    let (since, mut backoff) = (Instant::now(), connect_backoff());
    loop {
        match connect(sink, Purpose::LockWait).await {
            Err(fault) if order.others_connected && fault.code == NO_ROOM => {
                return Err(ConnectFailure::NoRoom);
            }
            Err(fault) if fault.class == FaultClass::Unavailable => {
                if since.elapsed() >= away_wait {
                    return Err(ConnectFailure::Failed(waited_in_vain(&fault, away_wait)));
                }
            }
            Err(_) if order.policy.is_persistent() => {}
            connected => return connected.map_err(ConnectFailure::Failed),
        }
        tokio::time::sleep(backoff.delay()).await;
    }
}
