//! The port between frontends and a lane: a bounded channel of submissions.
//!
//! A frontend takes bytes from the [`Budget`], submits units and awaits their outcomes. It never waits to collect more:
//! that would be a second, hidden batcher.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::budget::{Budget, Permit};
use crate::fault::Fault;
use crate::outcome::UnitOutcome;
use crate::unit::Unit;

/// Who asks: one client's ordered stream of writes (a connection, a request, a body). Units of one source keep their order;
/// sources take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u64);

/// Units that one source hands over at once, to be answered at once.
#[derive(Debug)]
pub struct Submission {
    /// Who asks.
    pub source: SourceId,
    /// What is asked for, in order.
    pub units: Vec<Unit>,
    /// The memory that the units take. The lane gives it back when all of them are answered.
    pub permit: Permit,
    /// When it was handed over.
    pub arrived: Instant,
    /// Where the outcomes go, one for each unit, in order.
    pub reply: Reply,
}

/// The lane's end of an answer.
#[derive(Debug)]
pub struct Reply(oneshot::Sender<Vec<UnitOutcome>>);

impl Reply {
    /// Answers. An answer that nobody waits for any more is dropped.
    pub fn send(self, outcomes: Vec<UnitOutcome>) {
        // An error only says that the client has left.
        drop(self.0.send(outcomes));
    }

    /// True once the client has left; its units that are not under way yet are to be taken out.
    pub fn is_abandoned(&self) -> bool {
        self.0.is_closed()
    }
}

/// The frontend's end of an answer: a future of one outcome for each unit, in order.
///
/// Dropping it takes those units out that are not under way yet; the others may still take place.
#[must_use = "dropping a receipt takes the units out of the queue"]
#[derive(Debug)]
pub struct Receipt {
    reply: oneshot::Receiver<Vec<UnitOutcome>>,
    units: usize,
}

impl Future for Receipt {
    type Output = Vec<UnitOutcome>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let units = self.units;
        Pin::new(&mut self.reply).poll(cx).map(|outcomes| {
            outcomes.unwrap_or_else(|_| {
                let gone =
                    Fault::unknown("the lane ended before it knew the outcome of this write");
                vec![Err(gone.into()); units]
            })
        })
    }
}

/// The frontends' handle of a lane. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Intake {
    lane: mpsc::Sender<Submission>,
    budget: Budget,
    sources: Arc<AtomicU64>,
}

/// The lane's end of an [`Intake`].
pub type Arrivals = mpsc::Receiver<Submission>;

impl Intake {
    /// A handle and its other end. `capacity` bounds the submissions between them; past it, submitting waits.
    pub fn channel(budget: Budget, capacity: usize) -> (Self, Arrivals) {
        let (lane, arrivals) = mpsc::channel(capacity);
        (
            Self {
                lane,
                budget,
                sources: Arc::default(),
            },
            arrivals,
        )
    }

    /// The memory budget that every submission is charged to.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// A source that nobody else has.
    pub fn new_source(&self) -> SourceId {
        SourceId(self.sources.fetch_add(1, Ordering::Relaxed))
    }

    /// Hands units over. The future ends when the lane has them; what it gives is the future of their outcomes.
    /// `permit` must cover [`Unit::bytes`] of all of them. Cancel safe: a dropped future hands nothing over.
    ///
    /// # Errors
    /// [`crate::FaultClass::Cancelled`] once the lane has shut down.
    pub async fn submit(
        &self,
        source: SourceId,
        units: Vec<Unit>,
        permit: Permit,
    ) -> Result<Receipt, Fault> {
        let (sender, reply) = oneshot::channel();
        let receipt = Receipt {
            reply,
            units: units.len(),
        };
        let arrived = Instant::now();
        let submission = Submission {
            source,
            units,
            permit,
            arrived,
            reply: Reply(sender),
        };
        match self.lane.send(submission).await {
            Ok(()) => Ok(receipt),
            Err(_) => Err(Fault::cancelled(
                "Windrow is shutting down; the write was not accepted",
            )),
        }
    }

    /// One unit, all the way: takes its memory at once or fails, submits it, awaits its outcome.
    ///
    /// # Errors
    /// Those of [`Budget::try_take`] and [`Intake::submit`], and the unit's own.
    pub async fn run(&self, source: SourceId, unit: Unit) -> UnitOutcome {
        let permit = self.budget.try_take(unit.bytes())?;
        let mut outcomes = self.submit(source, vec![unit], permit).await?.await;
        outcomes
            .pop()
            .unwrap_or_else(|| Err(Fault::internal("a unit was not answered").into()))
    }
}
