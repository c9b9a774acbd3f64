//! Handles arrays of documents. The answer has as many results, in the same order.

use std::collections::BTreeMap;

use http::StatusCode;
use http::header::HeaderName;
use serde_json::value::RawValue;
use windrow_core::unit::UNIT_OVERHEAD;
use windrow_core::{Fault, Op, Value, Write, WriteDone};
use windrow_http::extension::object::{self, json_error};
use windrow_http::extension::{
    self, Ack, Charge, Extent, Feed, Plan, Whole, WholeAnswer, done_of, whole_json,
};

use crate::answer::{self, Row};
use crate::document::Document;
use crate::endpoint::Endpoint;
use crate::error::{self, Error, TYPE_INVALID, bad};
use crate::replace::{self, Replacement};
use crate::request::DocumentRequest;
use crate::{key, writes};

/// Header with the number of occurrences of each error: `1210:2,1202:1`.
const ERROR_CODES: HeaderName = HeaderName::from_static("x-arango-error-codes");

/// Handles `PUT`, `PATCH` and `DELETE /_api/document/{collection}`.
pub(crate) async fn run(
    request: &DocumentRequest<'_>,
    endpoint: Endpoint,
    feed: &mut Feed<'_>,
) -> Result<WholeAnswer, Error> {
    let app = request.context.app;
    let whole = feed.all(app.body_limit(), app.budget()).await?;
    match endpoint {
        Endpoint::UpdateDocuments => {
            let plan = request.plan(Op::Update)?;
            let make = |text: &RawValue| {
                let mut document = read(text, Some(&plan))?;
                let key = key::of_document(request, &mut document)?;
                Ok((key.clone(), writes::change(request, &plan, document, &key)?))
            };
            written(request, whole, make, (Ack::Commit, StatusCode::CREATED)).await
        }
        Endpoint::RemoveDocuments => {
            let plan = request.plan(Op::Delete)?;
            let make = |text: &RawValue| by_key(request, &plan, text);
            written(request, whole, make, (Ack::Commit, StatusCode::OK)).await
        }
        _ if request.options.only_get => {
            let plan = request.plan(Op::Get)?;
            let make = |text: &RawValue| by_key(request, &plan, text);
            written(request, whole, make, (Ack::Commit, StatusCode::OK)).await
        }
        _ => replaced(request, whole).await,
    }
}

/// Handles `POST /_api/document/{collection}` with an array.
pub(crate) async fn create(
    request: &DocumentRequest<'_>,
    whole: Whole,
) -> Result<WholeAnswer, Error> {
    let plan = request.plan(Op::Insert)?;
    let make = |text: &RawValue| {
        check_object(text)?;
        writes::insert(request, &plan, text.get().as_bytes())
    };
    let ack = request.insert_ack()?;
    let status = DocumentRequest::insert_status(ack);
    written(request, whole, make, (ack, status)).await
}

/// Returns the write for an operation by key alone. The element is a key or a document with one.
fn by_key(
    request: &DocumentRequest<'_>,
    plan: &Plan,
    text: &RawValue,
) -> Result<(Box<str>, Write), Error> {
    let key = match object::value(text.get()) {
        Ok(Value::Text(handle)) => key::of_handle(request, &handle)?,
        _ => key::of_document(request, &mut read(text, None)?)?,
    };
    let write = writes::of_key(plan, &key);
    Ok((key, write))
}

fn read(text: &RawValue, plan: Option<&Plan>) -> Result<Document, Error> {
    check_object(text)?;
    let guess = plan.and_then(Plan::guess);
    Document::read(text.get().as_bytes(), guess.as_ref())
}

fn check_object(text: &RawValue) -> Result<(), Error> {
    if text.get().starts_with('{') {
        return Ok(());
    }
    Err(bad(
        TYPE_INVALID,
        "invalid document type: each element of the array must be an object",
    ))
}

fn elements<'w>(
    request: &DocumentRequest<'_>,
    whole: &'w Whole,
    charge: &mut Charge,
) -> Result<Vec<&'w RawValue>, Error> {
    if !whole.bytes.trim_ascii_start().starts_with(b"[") {
        return Err(bad(
            TYPE_INVALID,
            "the body must be an array of documents; one document goes to /_api/document/COLLECTION/KEY",
        ));
    }
    let elements = extension::elements(request.context.app, &whole.bytes, charge)?;
    let elements = elements.map_err(|error| json_error(&error))?;
    charge.add(elements.len() * size_of::<Slot>())?;
    Ok(elements)
}

/// The key of an element, or its error, before the lane executes it.
type Slot = Result<Box<str>, Error>;

async fn written(
    request: &DocumentRequest<'_>,
    whole: Whole,
    make: impl Fn(&RawValue) -> Result<(Box<str>, Write), Error>,
    (ack, status): (Ack, StatusCode),
) -> Result<WholeAnswer, Error> {
    let [mut charge, mut kept] =
        [(); 2].map(|()| Charge::new(request.context.app.budget().clone()));
    let mut slots: Vec<Slot> = Vec::new();
    let mut writes = Vec::new();
    for element in elements(request, &whole, &mut kept)? {
        let made = make(element);
        let slot = match made {
            Ok((key, write)) => {
                charge.add(UNIT_OVERHEAD + write.bytes())?;
                writes.push(write);
                Ok(key)
            }
            Err(error) => {
                kept.add(error.fault().bytes())?;
                Err(error)
            }
        };
        slots.push(slot);
    }
    drop(whole);
    let outcomes = request
        .context
        .outcomes_of(ack, writes, charge.into_permit(), Extent::Last)
        .await?;
    let done = outcomes.into_iter().map(done_of);
    Ok(answer_all(request, slots, done, status))
}

async fn replaced(request: &DocumentRequest<'_>, whole: Whole) -> Result<WholeAnswer, Error> {
    let mut charge = Charge::new(request.context.app.budget().clone());
    let mut slots: Vec<Slot> = Vec::new();
    let mut documents = Vec::new();
    for element in elements(request, &whole, &mut charge)? {
        let document = read(element, None);
        let made = document.and_then(|mut document| {
            let key = key::of_document(request, &mut document)?;
            Ok(Replacement::new(key, document))
        });
        slots.push(match made {
            Ok(document) => {
                charge.add(UNIT_OVERHEAD + element.get().len())?;
                let key = document.key.clone();
                documents.push(document);
                Ok(key)
            }
            Err(error) => {
                charge.add(error.fault().bytes())?;
                Err(error)
            }
        });
    }
    drop(whole);
    let results = replace::each(request, &documents).await?;
    Ok(answer_all(
        request,
        slots,
        results.into_iter(),
        StatusCode::CREATED,
    ))
}

fn answer_all(
    request: &DocumentRequest<'_>,
    slots: Vec<Slot>,
    mut outcomes: impl Iterator<Item = Result<WriteDone, Fault>>,
    status: StatusCode,
) -> WholeAnswer {
    let mut body = b"[".to_vec();
    let mut codes: BTreeMap<u16, u64> = BTreeMap::new();
    for slot in slots {
        let result = slot.and_then(|key| {
            let missing = || Err(Fault::internal("the lane did not answer a document"));
            let done = outcomes.next().unwrap_or_else(missing)?;
            if done.rows == 0 && !may_do_nothing(request, status) {
                return Err(error::not_found(&key));
            }
            Ok((key, done))
        });
        if body.len() > 1 && !(request.options.silent && result.is_ok()) {
            body.push(b',');
        }
        match result {
            Err(error) => {
                *codes.entry(error.number()).or_default() += 1;
                error::element(&mut body, &error);
            }
            Ok(_) if request.options.silent => {}
            Ok((key, done)) if request.options.only_get => {
                if let Some(row) = Row::of(&done) {
                    row.write(&mut body, request, &key);
                }
            }
            Ok((key, done)) => answer::written(&mut body, request, &key, &done),
        }
    }
    body.push(b']');
    if request.options.silent && codes.is_empty() {
        body = b"{}".to_vec();
    }
    let mut answer = whole_json(status, body);
    if !codes.is_empty() {
        let counts = codes.iter().map(|(code, count)| format!("{code}:{count}"));
        let text = counts.collect::<Vec<_>>().join(",");
        answer::set(&mut answer, ERROR_CODES, &text);
    }
    answer
}

/// Returns true if a write may leave all rows unchanged: an insert that ignores existing keys. All
/// other writes must find their row.
fn may_do_nothing(request: &DocumentRequest<'_>, status: StatusCode) -> bool {
    let ignores = request.options.on_conflict == windrow_core::OnConflict::Ignore;
    ignores && status == StatusCode::CREATED
}
