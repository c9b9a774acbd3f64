//! One file for each kind of request.

pub(crate) mod atomic;
mod batch;
mod insert;
mod keyed;
mod operation;
mod ops;
mod pump;
mod turn;

use windrow_core::intake::Receipt;
use windrow_core::{Fault, Outcomes, Permit, Unit, UnitOutcome, Write};

use crate::answer::{Answer, Refusal};
use crate::app::Ask;
use crate::body::Feed;
use crate::route::{Endpoint, Route};
use crate::{document, envelope};

pub(crate) use turn::Turn;

/// Runs a request. The rare ones are boxed, so that the common one stays small.
pub(crate) async fn run(
    ask: &Ask<'_>,
    route: Route<'_>,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    if envelope::is_one(route.endpoint, &ask.head.headers) {
        return Box::pin(envelope::run(ask, feed)).await;
    }
    alone(ask, route, feed).await
}

/// Runs a request that holds no others.
pub(crate) async fn alone(
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
        Endpoint::Envelope | Endpoint::PutEnvelope => Err(envelope::nested()),
        endpoint if endpoint.is_document() => Box::pin(document::run(ask, route, feed)).await,
        endpoint => Ok(ops::fixed(ask, endpoint)),
    }
}

impl Ask<'_> {
    /// Hands one unit to the lane and waits for its outcome. `held` is memory that was taken for it
    /// before.
    pub(crate) async fn submit_one(&self, unit: Unit, held: Permit) -> UnitOutcome {
        let intake = &self.app.services.intake;
        let permit = cover(held, unit.bytes(), intake.budget())?;
        let writes = unit.writes().len() as u64;
        let receipt = intake.submit(self.source, [unit], permit).await?;
        self.turn.pass();
        self.app.services.metrics.rows.inc_by(writes);
        let mut outcomes = receipt.await;
        outcomes
            .pop()
            .unwrap_or_else(|| Err(Fault::internal("the lane did not answer a unit").into()))
    }

    /// Hands writes to the lane, one unit each and all of them at once, so that they keep their
    /// order. `permit` covers them.
    pub(crate) async fn submit_each(
        &self,
        writes: Vec<Write>,
        permit: Permit,
    ) -> Result<Receipt, Fault> {
        let units: Vec<Unit> = writes.into_iter().map(Unit::one).collect();
        let services = &self.app.services;
        services.metrics.rows.inc_by(units.len() as u64);
        services.intake.submit(self.source, units, permit).await
    }

    /// As [`Ask::submit_each`], with the outcomes; the next part of an envelope may begin in
    /// between.
    pub(crate) async fn outcomes_of(
        &self,
        writes: Vec<Write>,
        permit: Permit,
    ) -> Result<Outcomes, Fault> {
        if writes.is_empty() {
            return Ok(Outcomes::new());
        }
        let receipt = self.submit_each(writes, permit).await?;
        self.turn.pass();
        Ok(receipt.await)
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
