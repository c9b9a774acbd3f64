//! One request with its surroundings, and how it hands its writes to the lane.

use http::request::Parts;
use windrow_core::intake::Receipt;
use windrow_core::{
    Budget, Fault, Outcomes, Permit, RowDone, RowWrite, SourceId, Unit, UnitOutcome,
};

use crate::app::App;
use crate::handover::Handover;

/// One request with its surroundings, but for its body.
pub struct RequestContext<'a> {
    /// What all requests share.
    pub app: &'a App,
    /// Its head.
    pub head: &'a Parts,
    pub(crate) source: SourceId,
    /// Where it says that it has handed its writes over.
    pub(crate) handover: &'a Handover,
}

impl RequestContext<'_> {
    /// Hands one unit to the lane and waits for its outcome. `held` is memory that was taken for it
    /// before.
    pub(crate) async fn submit_one(
        &self,
        unit: Unit<RowWrite>,
        held: Permit,
    ) -> UnitOutcome<RowDone> {
        let intake = &self.app.services.intake;
        let permit = cover(held, unit.bytes(), intake.budget())?;
        let writes = unit.work().len() as u64;
        let receipt = intake.submit(self.source, [unit], permit).await?;
        self.handover.complete();
        self.app.services.metrics.rows.inc_by(writes);
        let mut outcomes = receipt.await;
        outcomes
            .pop()
            .unwrap_or_else(|| Err(Fault::internal("the lane did not answer a unit").into()))
    }

    /// Hands one write to the lane; what it did. `held` is memory that was taken for
    /// it before.
    pub async fn write(&self, write: RowWrite, held: Permit) -> Result<RowDone, Fault> {
        done_of(self.submit_one(Unit::one(write), held).await)
    }

    /// Hands writes to the lane, one unit each and all of them at once, so that they keep their
    /// order. `permit` covers them.
    pub async fn submit_each(
        &self,
        writes: Vec<RowWrite>,
        permit: Permit,
    ) -> Result<Receipt<RowDone>, Fault> {
        let units: Vec<Unit<RowWrite>> = writes.into_iter().map(Unit::one).collect();
        let services = &self.app.services;
        services.metrics.rows.inc_by(units.len() as u64);
        services.intake.submit(self.source, units, permit).await
    }

    /// As [`RequestContext::submit_each`], with the outcomes; the next part of an envelope may
    /// begin in between.
    pub async fn outcomes_of(
        &self,
        writes: Vec<RowWrite>,
        permit: Permit,
    ) -> Result<Outcomes<RowDone>, Fault> {
        if writes.is_empty() {
            return Ok(Outcomes::new());
        }
        let receipt = self.submit_each(writes, permit).await?;
        self.handover.complete();
        Ok(receipt.await)
    }
}

/// What the write of a unit of one write did.
pub fn done_of(outcome: UnitOutcome<RowDone>) -> Result<RowDone, Fault> {
    match outcome {
        Ok(dones) => Ok(dones.into_iter().next().unwrap_or_default()),
        Err(failed) => Err(failed.fault),
    }
}

/// A permit of exactly so many bytes, out of what is held already.
fn cover(mut held: Permit, bytes: usize, budget: &Budget) -> Result<Permit, Fault> {
    let missing = bytes.saturating_sub(held.bytes());
    if missing > 0 {
        held.merge(budget.try_take(missing)?);
    } else {
        held.shrink_to(bytes);
    }
    Ok(held)
}
