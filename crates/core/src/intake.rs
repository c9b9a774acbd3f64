//! The port between frontends and a lane: a bounded channel of submissions.
//!
//! A frontend takes bytes from the [`Budget`], submits units and awaits their outcomes. It never
//! waits to collect more units: only the lane forms batches.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use smallvec::SmallVec;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::budget::{Budget, Permit};
use crate::fault::Fault;
use crate::outcome::UnitOutcome;
use crate::retry::RetryPolicy;
use crate::trace::Trace;
use crate::unit::Unit;

pub use crate::source::SourceId;

/// The most hints that wait for the lane. The lane reads them in its next turn, so only many
/// clients at the same moment reach this number.
const HINTS: usize = 1024;

/// A frontend's handle of a lane. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Intake {
    lane: mpsc::Sender<Submission>,
    hints: Arc<mpsc::Sender<Hint>>,
    budget: Budget,
    sources: Arc<AtomicU64>,
    policy: RetryPolicy,
}

impl Intake {
    /// Returns a handle and its other end. `capacity` is the number of submissions between them;
    /// beyond it, submitting waits.
    pub fn channel(budget: Budget, capacity: usize) -> (Self, Arrivals) {
        let (lane, submissions) = mpsc::channel(capacity);
        let (hinter, hints) = mpsc::channel(HINTS);
        let intake = Self {
            lane,
            hints: Arc::new(hinter),
            budget,
            sources: Arc::default(),
            policy: RetryPolicy::client(),
        };
        (intake, Arrivals { submissions, hints })
    }

    /// Returns a handle of the same lane whose units are retried by another policy than a client's.
    #[must_use]
    pub fn with_policy(&self, policy: RetryPolicy) -> Self {
        Self {
            policy,
            ..self.clone()
        }
    }

    /// Returns the memory budget that every submission is charged to.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns a new source.
    pub fn new_source(&self) -> SourceId {
        SourceId(self.sources.fetch_add(1, Ordering::Relaxed))
    }

    /// Submits units. The future ends when the lane has them; its result is the future of their
    /// outcomes. `permit` must cover [`Unit::bytes`] of all units. Cancel safe: a dropped future
    /// submits nothing.
    ///
    /// # Errors
    /// [`crate::FaultClass::Cancelled`] once the lane has shut down.
    pub async fn submit(
        &self,
        source: SourceId,
        units: impl Into<Units>,
        permit: Permit,
    ) -> Result<Receipt, Fault> {
        self.submit_traced(source, units, permit, None).await
    }

    /// Submits units as [`Intake::submit`] does, for a request that may be traced.
    ///
    /// # Errors
    /// As [`Intake::submit`].
    pub async fn submit_traced(
        &self,
        source: SourceId,
        units: impl Into<Units>,
        permit: Permit,
        trace: Option<&Trace>,
    ) -> Result<Receipt, Fault> {
        let mut units: Units = units.into();
        for unit in &mut units {
            unit.hand_over(source);
        }
        let (reply, receipt) = pair(source, units.len(), &self.hints);
        let submission = Submission {
            source,
            units,
            permit,
            arrived: Instant::now(),
            reply,
            policy: self.policy,
            trace: trace.cloned(),
        };
        let failed = match self.lane.try_send(submission) {
            Ok(()) => return Ok(receipt),
            Err(failed) => failed,
        };
        let closed = match failed {
            mpsc::error::TrySendError::Closed(_) => true,
            mpsc::error::TrySendError::Full(submission) => {
                Box::pin(self.lane.send(submission)).await.is_err()
            }
        };
        if closed {
            receipt.forget();
            return Err(Fault::cancelled(
                "Windrow is shutting down; the write was not accepted",
            ));
        }
        Ok(receipt)
    }

    /// Cancels the first unanswered unit of a source. If the unit has not left for the database, it
    /// is answered at once with [`crate::FaultClass::Cancelled`] (57014). If it is under way by
    /// itself, it is interrupted. If it is in a batch with others, it is answered so unless the
    /// batch executes it. Without an unanswered unit nothing happens.
    ///
    /// Never blocks. As with PostgreSQL's own cancel request, success is not promised: if a
    /// thousand clients leave or cancel at the same moment, one more request may be lost.
    pub fn cancel(&self, source: SourceId) {
        // An error means that the lane has ended, or that too many hints wait.
        let hint = Hint::Cancel(source, Instant::now());
        self.hints.try_send(hint).ok();
    }

    /// Reports that the source's client has closed its side of the connection. Its units are
    /// executed nevertheless, as by a server that has read them. But a unit that waits for a lock,
    /// now or later, is cancelled and answered with [`crate::FaultClass::Cancelled`]. Never blocks,
    /// and may be lost as with [`Intake::cancel`].
    pub fn closed(&self, source: SourceId) {
        self.hints.try_send(Hint::Closed(source)).ok();
    }

    /// Asks the lane to close its idle connections, because others need them. Never blocks, and may
    /// be lost as with [`Intake::cancel`].
    pub fn rest(&self) {
        self.hints.try_send(Hint::Rest).ok();
    }

    /// Reports the result of a probe of the database, so that an idle lane shows the database's
    /// state. A busy lane ignores the report, because its own connections show more. Never blocks,
    /// and may be lost as with [`Intake::cancel`].
    pub fn probed(&self, result: Result<(), Fault>) {
        let hint = Hint::Probed(result.err().map(Box::new));
        self.hints.try_send(hint).ok();
    }

    /// Executes one unit: takes its memory or fails at once, submits it, and awaits its outcome.
    ///
    /// # Errors
    /// Those of [`Budget::try_take`] and [`Intake::submit`], and the unit's own.
    pub async fn run(&self, source: SourceId, unit: Unit) -> UnitOutcome {
        let permit = self.budget.try_take(unit.bytes())?;
        let mut outcomes = self.submit(source, [unit], permit).await?.await;
        outcomes
            .pop()
            .unwrap_or_else(|| Err(Fault::internal("a unit was not answered").into()))
    }
}

/// The units of a submission. Nearly always one, which needs no allocation.
pub type Units = SmallVec<[Unit; 1]>;

/// Units that one source submits together, and that are answered together.
#[derive(Debug)]
pub struct Submission {
    /// The source of the units.
    pub source: SourceId,
    /// The units, in order.
    pub units: Units,
    /// The memory of the units. The lane returns it when all of them are answered.
    pub permit: Permit,
    /// The time of the submission.
    pub arrived: Instant,
    /// The lane's end of the answer: one outcome for each unit, in order.
    pub reply: Reply,
    /// The policy by which the lane retries the units.
    pub policy: RetryPolicy,
    /// The trace of the request; `None` if it is not traced.
    pub trace: Option<Trace>,
}

/// A message of a frontend to a lane besides submissions. Hints have a channel of their own, so
/// that they do not wait for the next flight to end. A stand-in for a lane may leave them unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The client of the source cancels its first unanswered unit, unless that was submitted after
    /// this time.
    Cancel(SourceId, Instant),
    /// The client of the source has closed its side of the connection: its units are still
    /// executed, but none waits for a lock.
    Closed(SourceId),
    /// The source no longer waits for all of its submissions ([`Reply::is_abandoned`]).
    Left(SourceId),
    /// Others need connections: the lane should close its idle ones.
    Rest,
    /// The result of a probe while the lane was idle: the fault, or `None` for a sign of life.
    Probed(Option<Box<Fault>>),
}

/// The lane's end of an [`Intake`].
#[derive(Debug)]
pub struct Arrivals {
    /// The submitted units.
    pub submissions: mpsc::Receiver<Submission>,
    /// The hints. A hint may be read before the submission that it is about: read all submissions
    /// that are there when a hint was read, before acting on it.
    pub hints: mpsc::Receiver<Hint>,
}

impl Arrivals {
    /// Receives the next submission; `None` once all intakes are dropped. Cancel safe.
    pub async fn recv(&mut self) -> Option<Submission> {
        self.submissions.recv().await
    }

    /// Receives several submissions, as [`mpsc::Receiver::recv_many`]. Cancel safe.
    pub async fn recv_many(&mut self, into: &mut Vec<Submission>, limit: usize) -> usize {
        self.submissions.recv_many(into, limit).await
    }

    /// Receives the next submission if there is one already.
    ///
    /// # Errors
    /// As [`mpsc::Receiver::try_recv`].
    pub fn try_recv(&mut self) -> Result<Submission, mpsc::error::TryRecvError> {
        self.submissions.try_recv()
    }

    /// Accepts no more submissions. Those already in the channel can still be received.
    pub fn close(&mut self) {
        self.submissions.close();
    }
}

/// One outcome for each unit of a submission, in order.
pub type Outcomes = SmallVec<[UnitOutcome; 1]>;

/// The lane's end of an answer.
#[derive(Debug)]
pub struct Reply {
    sender: oneshot::Sender<(Outcomes, bool)>,
    is_shared: bool,
}

impl Reply {
    /// Notes that a unit has its outcome from a batch with units of another source.
    pub fn share(&mut self) {
        self.is_shared = true;
    }

    /// Sends the outcomes. They are dropped if the client no longer waits.
    pub fn send(self, outcomes: impl Into<Outcomes>) {
        // An error only means that the client has left.
        drop(self.sender.send((outcomes.into(), self.is_shared)));
    }

    /// True once the client has left; then its units that are not under way should be dropped.
    pub fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }
}

/// The frontend's end of an answer: a future of one outcome for each unit, in order.
///
/// If the receipt is dropped, units that are not under way are dropped; others may still be
/// executed.
#[must_use = "dropping a receipt takes the units out of the queue"]
#[derive(Debug)]
pub struct Receipt {
    reply: oneshot::Receiver<(Outcomes, bool)>,
    source: SourceId,
    units: usize,
    is_shared: bool,
    /// The channel that reports a dropped receipt; `None` once the answer has arrived.
    hints: Option<Arc<mpsc::Sender<Hint>>>,
}

fn pair(source: SourceId, units: usize, hints: &Arc<mpsc::Sender<Hint>>) -> (Reply, Receipt) {
    let (sender, reply) = oneshot::channel();
    let receipt = Receipt {
        reply,
        source,
        units,
        is_shared: false,
        hints: Some(Arc::clone(hints)),
    };
    let reply = Reply {
        sender,
        is_shared: false,
    };
    (reply, receipt)
}

impl Receipt {
    /// Drops the receipt without a hint: the lane never had its units.
    fn forget(mut self) {
        self.hints = None;
    }

    /// True if the outcomes have arrived, and one of them came from a batch with units of another
    /// source.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }
}

impl Future for Receipt {
    type Output = Outcomes;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = std::task::ready!(Pin::new(&mut self.reply).poll(cx));
        self.hints = None;
        let (outcomes, is_shared) = answer.unwrap_or_else(|_| {
            let gone = Fault::unknown("the lane ended before it knew the outcome of this write");
            (smallvec::smallvec![Err(gone.into()); self.units], false)
        });
        self.is_shared = is_shared;
        Poll::Ready(outcomes)
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        let Some(hints) = &self.hints else { return };
        // Closed before the hint is sent, so that the lane that reads the hint finds the units
        // abandoned.
        self.reply.close();
        if self.reply.try_recv().is_err() {
            // A lost hint only costs time: the units are dropped before the next flight.
            hints.try_send(Hint::Left(self.source)).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Budget;

    #[tokio::test]
    async fn who_leaves_before_the_answer_is_heard() {
        let (intake, mut arrivals) = Intake::channel(Budget::new(1000), 4);
        let source = intake.new_source();
        let unit = || [Unit::of([])];
        let kept = intake.submit(source, unit(), Permit::empty()).await;
        let left = intake.submit(source, unit(), Permit::empty()).await;
        drop(left);
        intake.cancel(source);
        assert_eq!(arrivals.hints.try_recv(), Ok(Hint::Left(source)));
        let hint = arrivals.hints.try_recv();
        assert!(matches!(hint, Ok(Hint::Cancel(of, _)) if of == source));
        let (first, second) = (arrivals.try_recv(), arrivals.try_recv());
        assert!(second.unwrap().reply.is_abandoned());
        first.unwrap().reply.send([Ok(crate::Dones::new())]);
        assert_eq!(kept.unwrap().await.len(), 1);
        assert!(arrivals.hints.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_lane_that_is_shut_refuses_without_a_hint() {
        let (intake, mut arrivals) = Intake::channel(Budget::new(1000), 1);
        arrivals.close();
        let refused = intake
            .submit(intake.new_source(), [Unit::of([])], Permit::empty())
            .await;
        assert_eq!(refused.unwrap_err().class, crate::FaultClass::Cancelled);
        assert!(arrivals.hints.try_recv().is_err());
    }
}
