//! `POST /v1/batch`: operations on any tables, each as if it were sent alone, or all in one unit.

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use windrow_core::{Fault, Op, Permit, RowDone, RowWrite, Unit, Work};

use crate::answers::json::{self, ErrorPosition};
use crate::answers::ledger::returned_bytes;
use crate::answers::{self, Answer, Refusal};
use crate::bodies::charge::Charge;
use crate::bodies::{Feed, kind};
use crate::handlers::atomic;
use crate::handlers::operation::{self, Shapes};
use crate::request::{RequestContext, done_of};
use crate::rows::object::json_error;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    operations: Vec<&'a RawValue>,
    #[serde(default)]
    atomic: bool,
}

/// What is known of an operation before the lane is asked, and what of it is kept for its answer.
struct Slot {
    id: Option<Box<RawValue>>,
    is_get: bool,
    fault: Option<Fault>,
}

/// All operations, read.
struct Operations {
    slots: Vec<Slot>,
    writes: Vec<RowWrite>,
    atomic: bool,
    permit: Permit,
}

pub(crate) async fn run(
    request: &RequestContext<'_>,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    kind::only_json(&request.head.headers)?;
    let app = request.app;
    let whole = feed.all(app.body_limit(), app.budget()).await?;
    let operations = read(request, &whole.bytes)?;
    drop(whole);
    let slots = operations.slots;
    if operations.atomic {
        let unit = Unit::of(operations.writes);
        let outcome = request.submit_one(unit, operations.permit).await;
        let dones = outcome.map_err(atomic::refuse)?;
        return Ok(answer_all(slots, dones.into_iter().map(Ok)));
    }
    let outcomes = request.outcomes_of(operations.writes, operations.permit);
    let outcomes = outcomes.await?;
    Ok(answer_all(slots, outcomes.into_iter().map(done_of)))
}

fn read(request: &RequestContext<'_>, text: &Bytes) -> Result<Operations, Refusal> {
    let envelope: Envelope<'_> = serde_json::from_slice(text).map_err(|e| json_error(&e))?;
    request.app.check_rows(envelope.operations.len())?;
    let mut charge = Charge::new(request.app.budget().clone());
    let mut shapes = Shapes::default();
    let mut slots = Vec::with_capacity(envelope.operations.len());
    let mut writes = Vec::with_capacity(envelope.operations.len());
    for (at, raw) in envelope.operations.iter().enumerate() {
        let read = operation::read(raw, &request.app.plans.system_tables, &mut shapes);
        let is_get = matches!(&read, Ok(write) if write.shape.op == Op::Get);
        let fault = match read {
            Ok(write) => {
                charge.add(windrow_core::unit::UNIT_OVERHEAD + write.bytes())?;
                writes.push(write);
                None
            }
            Err(fault) if envelope.atomic => return Err(Refusal::from(fault).index(at as u64)),
            Err(fault) => Some(fault),
        };
        slots.push(Slot {
            id: operation::id_of(raw).map(ToOwned::to_owned),
            is_get,
            fault,
        });
    }
    Ok(Operations {
        slots,
        writes,
        atomic: envelope.atomic,
        permit: charge.into_permit(),
    })
}

fn answer_all(
    slots: Vec<Slot>,
    mut outcomes: impl Iterator<Item = Result<RowDone, Fault>>,
) -> Answer {
    let mut body = b"{\"results\":[".to_vec();
    let mut errors = 0;
    for (at, slot) in slots.into_iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        let outcome = match slot.fault {
            Some(fault) => Err(fault),
            None => outcomes
                .next()
                .unwrap_or_else(|| Err(Fault::internal("the lane did not answer an operation"))),
        };
        errors += u64::from(outcome.is_err());
        write_result(&mut body, slot.id.as_deref(), slot.is_get, &outcome);
    }
    body.extend_from_slice(b"],\"errors\":");
    json::number(&mut body, errors);
    body.push(b'}');
    let status = if errors == 0 {
        StatusCode::OK
    } else {
        StatusCode::MULTI_STATUS
    };
    answers::of_json(status, body)
}

fn write_result(
    body: &mut Vec<u8>,
    id: Option<&RawValue>,
    is_get: bool,
    outcome: &Result<RowDone, Fault>,
) {
    body.push(b'{');
    if let Some(id) = id {
        body.extend_from_slice(b"\"id\":");
        body.extend_from_slice(id.get().as_bytes());
        body.push(b',');
    }
    match outcome {
        Err(fault) => json::error(body, fault, ErrorPosition::default()),
        Ok(done) if !is_get => json::done(body, done),
        Ok(done) => {
            body.reserve(returned_bytes(done));
            body.extend_from_slice(b"\"rows\":");
            json::number(body, done.rows);
            json::field(body, "row");
            let found = done.returned.as_deref();
            match found.and_then(|returned| Some((returned, returned.rows.first()?))) {
                Some((returned, row)) => json::row(body, returned, row),
                None => body.extend_from_slice(b"null"),
            }
        }
    }
    body.push(b'}');
}
