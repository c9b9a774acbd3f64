//! The two ends of an answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use smallvec::SmallVec;
use tokio::sync::{mpsc, oneshot};

use super::Hint;
use crate::fault::Fault;
use crate::outcome::UnitOutcome;
use crate::source::SourceId;

/// One outcome for each unit of a submission, in order.
pub type Outcomes<D> = SmallVec<[UnitOutcome<D>; 1]>;

/// The lane's end of an answer.
#[derive(Debug)]
pub struct Reply<D>(oneshot::Sender<Outcomes<D>>);

impl<D> Reply<D> {
    /// Answers. An answer that nobody waits for any more is dropped.
    pub fn send(self, outcomes: impl Into<Outcomes<D>>) {
        // An error only says that the client has left.
        drop(self.0.send(outcomes.into()));
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
pub struct Receipt<D> {
    reply: oneshot::Receiver<Outcomes<D>>,
    source: SourceId,
    units: usize,
    /// Where to say that nobody waits any more; `None` once the answer is there.
    hints: Option<Arc<mpsc::Sender<Hint>>>,
}

pub(super) fn pair<D>(
    source: SourceId,
    units: usize,
    hints: &Arc<mpsc::Sender<Hint>>,
) -> (Reply<D>, Receipt<D>) {
    let (sender, reply) = oneshot::channel();
    let receipt = Receipt {
        reply,
        source,
        units,
        hints: Some(Arc::clone(hints)),
    };
    (Reply(sender), receipt)
}

impl<D> Receipt<D> {
    /// Drops it without a word: the lane never had its units.
    pub(super) fn forget(mut self) {
        self.hints = None;
    }
}

impl<D: Clone> Future for Receipt<D> {
    type Output = Outcomes<D>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcomes = std::task::ready!(Pin::new(&mut self.reply).poll(cx));
        self.hints = None;
        Poll::Ready(outcomes.unwrap_or_else(|_| {
            let gone = Fault::unknown("the lane ended before it knew the outcome of this write");
            smallvec::smallvec![Err(gone.into()); self.units]
        }))
    }
}

impl<D> Drop for Receipt<D> {
    fn drop(&mut self) {
        let Some(hints) = &self.hints else { return };
        // First closed, then told: who hears it finds the units abandoned.
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
    use super::super::*;
    use crate::{Budget, RowWrite};

    #[tokio::test]
    async fn who_leaves_before_the_answer_is_heard() {
        let (intake, mut arrivals) = Intake::<RowWrite>::channel(Budget::new(1000), 4);
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
        let (intake, mut arrivals) = Intake::<RowWrite>::channel(Budget::new(1000), 1);
        arrivals.close();
        let refused = intake
            .submit(intake.new_source(), [Unit::of([])], Permit::empty())
            .await;
        assert_eq!(refused.unwrap_err().class, crate::FaultClass::Cancelled);
        assert!(arrivals.hints.try_recv().is_err());
    }
}
