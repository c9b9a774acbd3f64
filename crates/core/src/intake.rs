//! The port between frontends and a lane: a bounded channel of submissions.
//!
//! A frontend takes bytes from the [`Budget`], submits units and awaits their outcomes. It never
//! waits to collect more: that would be a second, hidden batcher.

mod arrivals;
mod hint;
mod receipt;
mod submission;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::budget::{Budget, Permit};
use crate::fault::Fault;
use crate::outcome::UnitOutcome;
use crate::retry::RetryPolicy;
use crate::trace::Trace;
use crate::unit::Unit;
use crate::work::Work;

pub use self::arrivals::Arrivals;
pub use self::hint::Hint;
pub use self::receipt::{Outcomes, Receipt, Reply};
pub use self::submission::{Submission, Units};
pub use crate::source::SourceId;

/// Hints that wait for the lane at most. Each is read at the lane's next turn, so they are many
/// clients at one moment.
const HINTS: usize = 1024;

/// The frontends' handle of a lane. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Intake<W: Work> {
    lane: mpsc::Sender<Submission<W>>,
    hints: Arc<mpsc::Sender<Hint>>,
    budget: Budget,
    sources: Arc<AtomicU64>,
    policy: RetryPolicy,
}

impl<W: Work> Intake<W> {
    /// A handle and its other end. `capacity` bounds the submissions between them; past it,
    /// submitting waits.
    pub fn channel(budget: Budget, capacity: usize) -> (Self, Arrivals<W>) {
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
        units: impl Into<Units<W>>,
        permit: Permit,
    ) -> Result<Receipt<W::Done>, Fault> {
        self.submit_traced(source, units, permit, None).await
    }

    /// As [`Intake::submit`], for a request that may be traced.
    ///
    /// # Errors
    /// As [`Intake::submit`].
    pub async fn submit_traced(
        &self,
        source: SourceId,
        units: impl Into<Units<W>>,
        permit: Permit,
        trace: Option<&Trace>,
    ) -> Result<Receipt<W::Done>, Fault> {
        let mut units: Units<W> = units.into();
        for unit in &mut units {
            unit.hand_over(source);
        }
        let (reply, receipt) = receipt::pair(source, units.len(), &self.hints);
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
    pub async fn run(&self, source: SourceId, unit: Unit<W>) -> UnitOutcome<W::Done> {
        let permit = self.budget.try_take(unit.bytes())?;
        let mut outcomes = self.submit(source, [unit], permit).await?.await;
        outcomes
            .pop()
            .unwrap_or_else(|| Err(Fault::internal("a unit was not answered").into()))
    }
}
