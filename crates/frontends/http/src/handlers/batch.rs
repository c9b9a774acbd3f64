//! `POST /v1/batch`: operations on any tables, each as if it were sent alone, or all in one unit.

use std::fmt;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use windrow_core::{Fault, Op, Permit, Unit, Write, WriteDone};
use windrow_idempotency::Extent;

use crate::ack::Ack;
use crate::answers::json::{self, ErrorPosition};
use crate::answers::ledger::returned_bytes;
use crate::answers::{self, Answer, Refusal};
use crate::bodies::charge::Charge;
use crate::bodies::{Feed, kind};
use crate::handlers::atomic;
use crate::handlers::operation::{self, Shapes};
use crate::query;
use crate::request::{RequestContext, done_of};
use crate::rows::elements::{self, Elements};
use crate::rows::object::json_error;

/// The operations, and true if they are one unit.
type Envelope<'a> = (Vec<&'a RawValue>, bool);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Operations,
    Atomic,
}

/// Reads the object of a body.
struct EnvelopeReader<'s>(Elements<'s>);

/// An operation before it is submitted, and its properties that the answer needs.
struct Slot {
    id: Option<Box<RawValue>>,
    is_get: bool,
    ack: Ack,
    fault: Option<Fault>,
}

/// Consecutive operations that all use the lane or all use the spool, and are submitted together.
struct Group {
    ack: Ack,
    writes: Vec<Write>,
    bytes: usize,
}

/// All operations of a body.
struct Operations {
    slots: Vec<Slot>,
    groups: Vec<Group>,
    atomic: bool,
    permit: Permit,
    /// The memory of the slots.
    kept: Permit,
}

pub(crate) async fn run(
    request: &RequestContext<'_>,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let asked = query::of_batch(request.query())?;
    kind::only_json(&request.head.headers)?;
    let app = request.app;
    let whole = feed.all(app.body_limit(), app.budget()).await?;
    let mut operations = read(request, &whole.bytes, asked)?;
    drop(whole);
    if operations.atomic {
        let ack = operations.join();
        let writes = operations.groups.into_iter().flat_map(|group| group.writes);
        let outcome = request.submit_one(ack, Unit::of(writes), operations.permit);
        let dones = outcome.await?.map_err(atomic::refuse)?;
        let answer = answer_all(operations.slots, dones.into_iter().map(Ok));
        drop(operations.kept);
        return Ok(answer);
    }
    let outcomes = hand_over(request, operations.groups, operations.permit).await?;
    let answer = answer_all(operations.slots, outcomes.into_iter());
    drop(operations.kept);
    Ok(answer)
}

impl Operations {
    /// Returns when all operations can be answered. Committed writes are durable too, so one
    /// operation that must be committed is enough.
    fn join(&mut self) -> Ack {
        let spooled = self.groups.iter().all(|group| group.ack == Ack::Spool);
        let ack = match spooled && !self.groups.is_empty() {
            true => Ack::Spool,
            false => Ack::Commit,
        };
        self.slots.iter_mut().for_each(|slot| slot.ack = ack);
        ack
    }

    fn push(&mut self, ack: Ack, write: Write, bytes: usize) {
        match self.groups.last_mut() {
            Some(group) if group.ack == ack => {
                group.writes.push(write);
                group.bytes += bytes;
            }
            _ => self.groups.push(Group {
                ack,
                writes: vec![write],
                bytes,
            }),
        }
    }
}

fn read(
    request: &RequestContext<'_>,
    text: &Bytes,
    asked: Option<Ack>,
) -> Result<Operations, Refusal> {
    let app = request.app;
    let [mut listed, mut charge, mut kept] = [(); 3].map(|()| Charge::new(app.budget().clone()));
    let (list, atomic) = elements::read(app, text, &mut listed, EnvelopeReader)?
        .map_err(|error| unread(text, &error))?;
    kept.add(list.len() * size_of::<Slot>())?;
    let mut shapes = Shapes::default();
    let mut operations = Operations {
        slots: Vec::with_capacity(list.len()),
        groups: Vec::new(),
        atomic,
        permit: Permit::empty(),
        kept: Permit::empty(),
    };
    for (at, raw) in list.iter().enumerate() {
        let mut slot = Slot {
            id: operation::id_of(raw).map(ToOwned::to_owned),
            is_get: false,
            ack: Ack::Commit,
            fault: None,
        };
        kept.add(slot.id.as_ref().map_or(0, |id| id.get().len()))?;
        match one(request, raw, (asked, atomic), &mut shapes) {
            Ok((write, ack)) => {
                (slot.is_get, slot.ack) = (write.shape.op == Op::Get, ack);
                let bytes = windrow_core::unit::UNIT_OVERHEAD + write.bytes();
                charge.add(bytes)?;
                operations.push(ack, write, bytes);
            }
            Err(fault) if atomic => return Err(Refusal::from(fault).index(at as u64)),
            Err(fault) => {
                kept.add(fault.bytes())?;
                slot.fault = Some(fault);
            }
        }
        operations.slots.push(slot);
    }
    operations.permit = charge.into_permit();
    operations.kept = kept.into_permit();
    Ok(operations)
}

impl<'de> DeserializeSeed<'de> for EnvelopeReader<'_> {
    type Value = Envelope<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EnvelopeReader<'_> {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with operations")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut elements, mut operations, mut atomic) = (Some(self.0), None, None);
        while let Some(field) = map.next_key()? {
            match field {
                Field::Operations => {
                    let twice = || A::Error::duplicate_field("operations");
                    let elements = elements.take().ok_or_else(twice)?;
                    operations = Some(map.next_value_seed(elements)?);
                }
                Field::Atomic if atomic.is_some() => {
                    return Err(A::Error::duplicate_field("atomic"));
                }
                Field::Atomic => atomic = Some(map.next_value()?),
            }
        }
        let missing = || A::Error::missing_field("operations");
        let operations = operations.ok_or_else(missing)?;
        Ok((operations, atomic.unwrap_or_default()))
    }
}

/// Returns the refusal of an unreadable body. If it is not an object, it is most likely a list of
/// operations.
fn unread(text: &[u8], error: &serde_json::Error) -> Refusal {
    let mut position = json_error(error);
    if text.trim_ascii_start().starts_with(b"[") {
        position.fault = position.fault.with_hint(Some(
            "the operations stand in an object: {\"operations\": [{\"op\": \"insert\", \"table\": \"t\", \"row\": {\"a\": 1}}]}",
        ));
        position.fault.message = "the body is an array, and an object is expected".into();
    }
    position.into()
}

/// Reads an operation: its write, and when it is answered.
fn one(
    request: &RequestContext<'_>,
    raw: &RawValue,
    (asked, is_atomic): (Option<Ack>, bool),
    shapes: &mut Shapes,
) -> Result<(Write, Ack), Fault> {
    let app = request.app;
    let (write, own) = operation::read(raw, &app.plans.system_tables, shapes)?;
    let shape = &write.shape;
    request.check_rows(shape)?;
    let what = (shape.op, shape.on_conflict, &shape.returning);
    let ack = app.ack(what, is_atomic, own.or(asked))?;
    Ok((write, ack))
}

/// Submits the groups, each after earlier ones of the other kind are answered, and returns the
/// outcome of each write. If a group cannot be submitted, each of its operations gets that fault,
/// because others of this batch may be done already.
async fn hand_over(
    request: &RequestContext<'_>,
    groups: Vec<Group>,
    mut permit: Permit,
) -> Result<Vec<Result<WriteDone, Fault>>, Refusal> {
    let mut outcomes = Vec::new();
    let (count, alone) = (groups.len(), groups.len() == 1);
    for (at, group) in groups.into_iter().enumerate() {
        let (writes, held) = (group.writes.len(), permit.split(group.bytes));
        let extent = match at + 1 == count {
            true => Extent::Last,
            false => Extent::More,
        };
        let handed_over = request.outcomes_of(group.ack, group.writes, held, extent);
        match handed_over.await {
            Ok(ended) => outcomes.extend(ended.into_iter().map(done_of)),
            Err(refusal) if alone => return Err(refusal),
            Err(refusal) => {
                let faults = std::iter::repeat_n(refusal.fault(), writes);
                outcomes.extend(faults.map(|fault| Err(fault.clone())));
            }
        }
    }
    Ok(outcomes)
}

fn answer_all(
    slots: Vec<Slot>,
    mut outcomes: impl Iterator<Item = Result<WriteDone, Fault>>,
) -> Answer {
    let mut body = b"{\"results\":[".to_vec();
    let (mut errors, mut ack) = (0, Ack::Commit);
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
        if slot.ack == Ack::Spool {
            ack = Ack::Spool;
        }
        write_result(
            &mut body,
            slot.id.as_deref(),
            slot.is_get,
            slot.ack,
            &outcome,
        );
    }
    body.extend_from_slice(b"],\"errors\":");
    json::number(&mut body, errors);
    body.push(b'}');
    let status = if errors == 0 {
        ack.status()
    } else {
        StatusCode::MULTI_STATUS
    };
    answers::of_json(status, body)
}

fn write_result(
    body: &mut Vec<u8>,
    id: Option<&RawValue>,
    is_get: bool,
    ack: Ack,
    outcome: &Result<WriteDone, Fault>,
) {
    body.push(b'{');
    if let Some(id) = id {
        body.extend_from_slice(b"\"id\":");
        body.extend_from_slice(id.get().as_bytes());
        body.push(b',');
    }
    match outcome {
        Err(fault) => json::error(body, fault, ErrorPosition::default()),
        Ok(done) if !is_get => json::done(body, ack, done),
        Ok(done) => {
            body.reserve(returned_bytes(done));
            json::count(body, ack, done.rows);
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
