//! One file for each kind of request.

mod atomic;
mod batch;
mod insert;
mod keyed;
mod operation;
mod ops;
mod pump;

use windrow_core::{Fault, Permit, Unit, UnitOutcome};

use crate::answer::{Answer, Refusal};
use crate::app::Ask;
use crate::body::Feed;
use crate::route::{Endpoint, Route};

/// Runs a request. The rare ones are boxed, so that the common one stays small.
pub(crate) async fn run(
    ask: &Ask<'_>,
    route: Route<'_>,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    match route.endpoint {
        Endpoint::InsertRows => insert::run(ask, route.table, feed).await,
        Endpoint::UpdateRow => Box::pin(keyed::update(ask, route, feed)).await,
        Endpoint::DeleteRow => Box::pin(keyed::delete(ask, route)).await,
        Endpoint::GetRow => Box::pin(keyed::get(ask, route)).await,
        Endpoint::Batch => Box::pin(batch::run(ask, feed)).await,
        Endpoint::Ready => Box::pin(ops::ready(ask)).await,
        _ => Ok(ops::fixed(ask, route.endpoint)),
    }
}

impl Ask<'_> {
    /// Hands one unit to the lane and waits for its outcome. `held` is memory that was taken for it before.
    pub(crate) async fn submit_one(&self, unit: Unit, held: Permit) -> UnitOutcome {
        let intake = &self.app.services.intake;
        let permit = cover(held, unit.bytes(), intake.budget())?;
        let writes = unit.writes().len() as u64;
        let receipt = intake.submit(self.source, [unit], permit).await?;
        self.app.services.metrics.rows.inc_by(writes);
        let mut outcomes = receipt.await;
        outcomes
            .pop()
            .unwrap_or_else(|| Err(Fault::internal("the lane did not answer a unit").into()))
    }
}

/// A permit of exactly so many bytes, out of what is held already.
fn cover(mut held: Permit, bytes: usize, budget: &windrow_core::Budget) -> Result<Permit, Fault> {
    let missing = bytes.saturating_sub(held.bytes());
    if missing > 0 {
        held.merge(budget.try_take(missing)?);
    } else {
        held.shrink_to(bytes);
    }
    Ok(held)
}
