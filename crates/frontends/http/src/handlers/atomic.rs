//! A body of many rows that are all written or not at all, as one unit.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use windrow_core::{FaultClass, Unit, UnitFault, Write};

use crate::ack::Ack;
use crate::answers::ledger::Ledger;
use crate::answers::refusal::status_of;
use crate::answers::{self, Answer, Refusal, Report};
use crate::bodies::Feed;
use crate::bodies::charge::Charge;
use crate::plan::Plan;
use crate::request::RequestContext;
use crate::rows::object::RowError;
use crate::rows::{RowReceiver, RowStream};

pub(crate) async fn run(
    request: &RequestContext<'_>,
    ack: Ack,
    plan: &Plan,
    mut rows: RowStream<'_>,
    first: Bytes,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let limit = request.app.body_limit();
    limit.check(feed.length().unwrap_or(0))?;
    let mut all = Rows::default();
    let mut charge = Charge::new(request.app.budget().clone());
    let mut next = Some(first);
    let (mut length, mut charged) = (0, 0);
    while let Some(chunk) = next {
        length += chunk.len() as u64;
        limit.check(length)?;
        rows.push(&chunk, &mut all)?;
        request.app.check_rows(all.writes.len())?;
        // The bytes held of an incomplete row will take at least as much memory once the row is
        // read.
        let due = all.bytes + rows.held();
        charge.add(due.saturating_sub(charged))?;
        charged = charged.max(due);
        feed.holds(true);
        next = feed.chunk().await?;
    }
    feed.holds(false);
    rows.finish(&mut all)?;
    request.app.check_rows(all.writes.len())?;
    let unit = Unit::of(all.writes);
    let outcome = request.submit_one(ack, unit, charge.into_permit()).await?;
    let mut ledger = Ledger::new(plan.options.results, ack, request.app.budget().clone());
    match outcome {
        Ok(dones) => dones.into_iter().for_each(|done| ledger.done(done)),
        Err(failed) => return Err(refuse(failed)),
    }
    // The rows are written, so their results are sent even if there is no memory to charge them.
    drop(ledger.charge(Duration::ZERO).await);
    Ok(answers::chunked_json(
        ack.status(),
        Report::new(ledger, None),
    ))
}

#[derive(Default)]
struct Rows {
    writes: Vec<Write>,
    bytes: usize,
}

impl RowReceiver for Rows {
    fn is_full(&self) -> bool {
        false
    }

    fn take(&mut self, write: Write) {
        self.bytes += write.bytes();
        self.writes.push(write);
    }

    fn refuse(&mut self, error: RowError) -> Result<(), RowError> {
        Err(error)
    }
}

/// Returns the refusal of a unit: 409 with the index of the row, if one of its rows failed.
pub(crate) fn refuse(failed: UnitFault) -> Refusal {
    let class = failed.fault.class;
    let status = match class {
        FaultClass::Unique
        | FaultClass::ForeignKey
        | FaultClass::NotNull
        | FaultClass::Check
        | FaultClass::Value
        | FaultClass::NoColumn => StatusCode::CONFLICT,
        _ => status_of(class),
    };
    Refusal::new(status, failed.fault).index(failed.at as u64)
}
