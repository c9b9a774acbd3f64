//! The port between frontends and a lane: a bounded channel of submissions.
//!
//! A frontend takes bytes from the [`Budget`], submits units and awaits their outcomes. It never
//! waits to collect more: that would be a second, hidden batcher.

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

/// Hints that wait for the lane at most. Each is read at the lane's next turn, so they are many
/// clients at one moment.
const HINTS: usize = 1024;

/// The frontends' handle of a lane. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Intake {
    lane: mpsc::Sender<Submission>,
    hints: Arc<mpsc::Sender<Hint>>,
    budget: Budget,
    sources: Arc<AtomicU64>,
    policy: RetryPolicy,
}

impl Intake {
    /// A handle and its other end. `capacity` bounds the submissions between them; past it,
    /// submitting waits.
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

    /// A handle of the same lane whose units are tried again by another policy than a client's.
    #[must_use]
    pub fn with_policy(&self, policy: RetryPolicy) -> Self {
        Self {
            policy,
            ..self.clone()
        }
    }

    /// The memory budget that every submission is charged to.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// A source that nobody else has.
    pub fn new_source(&self) -> SourceId {
        SourceId(self.sources.fetch_add(1, Ordering::Relaxed))
    }

    /// Hands units over. The future ends when the lane has them; what it gives is the future of
    /// their outcomes. `permit` must cover [`Unit::bytes`] of all of them. Cancel safe: a
    /// dropped future hands nothing over.
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

    /// As [`Intake::submit`], for a request that may be traced.
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

    /// Cancels what the source is waiting for: its first unit that is not answered yet; all other
    /// units stay. One that has not left for the database is answered at once with
    /// [`crate::FaultClass::Cancelled`] (57014), one that is under way by
    /// itself is interrupted, and one in a batch with others is answered so where the batch could
    /// not do it. If nothing is there, nothing happens.
    ///
    /// Never blocks. As with PostgreSQL's own cancel request, success is not promised: while a
    /// thousand clients leave or cancel at the same moment, one more may not be heard.
    pub fn cancel(&self, source: SourceId) {
        // An error says that the lane has ended or that too many speak at once.
        let hint = Hint::Cancel(source, Instant::now());
        self.hints.try_send(hint).ok();
    }

    /// The source's client has closed its side of the connection. What it has asked for is executed
    /// all the same, as a server does that has read it; but what waits for a lock, or comes to
    /// wait for one, is given up and answered with [`crate::FaultClass::Cancelled`]. Never
    /// blocks, and success is not promised, as with [`Intake::cancel`].
    pub fn closed(&self, source: SourceId) {
        self.hints.try_send(Hint::Closed(source)).ok();
    }

    /// Lets the lane know that others need connections: it closes those that nothing is under way
    /// on. Never blocks, and may not be heard while a thousand others speak.
    pub fn rest(&self) {
        self.hints.try_send(Hint::Rest).ok();
    }

    /// Reports to the lane if the database has given a sign of life, for what a lane that has
    /// nothing to do shows of its database. Ignored by a lane that is busy: it knows better. Never
    /// blocks, and may not be heard while a thousand others speak.
    pub fn probed(&self, result: Result<(), Fault>) {
        let hint = Hint::Probed(result.err().map(Box::new));
        self.hints.try_send(hint).ok();
    }

    /// One unit, all the way: takes its memory at once or fails, submits it, awaits its outcome.
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

/// The units of a submission. Nearly always one, kept without an allocation.
pub type Units = SmallVec<[Unit; 1]>;

/// Units that one source hands over at once, to be answered at once.
#[derive(Debug)]
pub struct Submission {
    /// The source of the units.
    pub source: SourceId,
    /// The units, in order.
    pub units: Units,
    /// The memory that the units take. The lane gives it back when all of them are answered.
    pub permit: Permit,
    /// When it was handed over.
    pub arrived: Instant,
    /// Where the outcomes go, one for each unit, in order.
    pub reply: Reply,
    /// The time for which the lane tries the units again.
    pub policy: RetryPolicy,
    /// Where the request is traced: who wants to know what becomes of the units.
    pub trace: Option<Trace>,
}

/// The messages of a frontend to a lane besides its submissions, so that nothing waits for the next
/// flight to end. A stand-in for a lane may leave hints unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The source wants its first unanswered unit cancelled, unless that is under way, or was
    /// submitted later than this.
    Cancel(SourceId, Instant),
    /// The source's client has closed its side: what it has asked for is still executed, but waits
    /// for no lock any more.
    Closed(SourceId),
    /// The source does not wait for all of its submissions any more
    /// ([`Reply::is_abandoned`]).
    Left(SourceId),
    /// Others need connections: those that nothing is under way on had better be closed.
    Rest,
    /// The database was asked for a sign of life while the lane had nothing to do. The fault, if
    /// it gave none.
    Probed(Option<Box<Fault>>),
}

/// The lane's end of an [`Intake`].
#[derive(Debug)]
pub struct Arrivals {
    /// The submitted units.
    pub submissions: mpsc::Receiver<Submission>,
    /// The hints about units that are given up. A hint may be read before the submission that it is
    /// about: read all submissions that are there when a hint was read before you follow it.
    pub hints: mpsc::Receiver<Hint>,
}

impl Arrivals {
    /// The next submission; `None` once all intakes are gone. Cancel safe.
    pub async fn recv(&mut self) -> Option<Submission> {
        self.submissions.recv().await
    }

    /// Several at once, as [`mpsc::Receiver::recv_many`]. Cancel safe.
    pub async fn recv_many(&mut self, into: &mut Vec<Submission>, limit: usize) -> usize {
        self.submissions.recv_many(into, limit).await
    }

    /// The next submission, if it is there already.
    ///
    /// # Errors
    /// As [`mpsc::Receiver::try_recv`].
    pub fn try_recv(&mut self) -> Result<Submission, mpsc::error::TryRecvError> {
        self.submissions.try_recv()
    }

    /// Lets nothing more in. What is in already can still be received.
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

    /// Answers. An answer that nobody waits for any more is dropped.
    pub fn send(self, outcomes: impl Into<Outcomes>) {
        // An error only says that the client has left.
        drop(self.sender.send((outcomes.into(), self.is_shared)));
    }

    /// True once the client has left; its units that are not under way yet are to be taken out.
    pub fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }
}

/// The frontend's end of an answer: a future of one outcome for each unit, in order.
///
/// Dropping it takes those units out that are not under way yet; the others may still take place.
#[must_use = "dropping a receipt takes the units out of the queue"]
#[derive(Debug)]
pub struct Receipt {
    reply: oneshot::Receiver<(Outcomes, bool)>,
    source: SourceId,
    units: usize,
    is_shared: bool,
    /// Where to say that nobody waits any more; `None` once the answer is there.
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
    /// Drops it without a word: the lane never had its units.
    fn forget(mut self) {
        self.hints = None;
    }

    /// True if the outcomes are there, and one of them came from a batch with units of another
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
        // Closed before the hint is sent: the lane that reads it finds the units abandoned.
        self.reply.close();
        if self.reply.try_recv().is_err() {
            // A hint that is not heard costs only time: the units are taken out before the next
            // flight.
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
