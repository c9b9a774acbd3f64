//! Turns the answer to an array into the verdicts of its writes.

use serde_json::value::RawValue;
use windrow_core::{Fault, OnConflict, Op, Returning, Rung, WriteDone};
use windrow_database::members::Members;
use windrow_database::web::{Answer, Batch, Loss, Refusal, Scope, Stop};

use super::plan::{DocumentRequest, none};
use crate::answer::{Entry, Failure};
use crate::fault::{MISSING, is_key_taken, refusal};
use crate::values::decode;

/// Gives each write its outcome.
pub(super) fn answered(
    batch: &mut Batch<'_>,
    request: &DocumentRequest,
    items: &[usize],
    answer: &Answer,
    rung: Rung,
) {
    let entries: Vec<&RawValue> = serde_json::from_slice(&answer.body).unwrap_or_default();
    if entries.len() != items.len() {
        let why = "the answer of ArangoDB to an array is not one entry a document";
        match request.op {
            Op::Get => batch.retry(items, &Fault::unavailable(why)),
            _ => batch.unknown(items, rung, why),
        }
        return;
    }
    batch.tally.commits += u32::from(request.op != Op::Get);
    for (at, entry) in items.iter().zip(entries) {
        match request.op {
            Op::Get => read(batch, request, *at, entry, rung),
            _ => written(batch, request, *at, entry, rung),
        }
    }
}

/// Gives a read its outcome. A document may have an attribute called `error`, but it always has an
/// `_id`.
fn read(batch: &mut Batch<'_>, request: &DocumentRequest, at: usize, entry: &RawValue, rung: Rung) {
    let document: Members<'_> = serde_json::from_str(entry.get()).unwrap_or_default();
    if document.get("_id").is_some() && document.get("_rev").is_some() {
        batch.done(at, rung, gave(request, &document));
        return;
    }
    written(batch, request, at, entry, rung);
}

fn written(
    batch: &mut Batch<'_>,
    request: &DocumentRequest,
    at: usize,
    entry: &RawValue,
    rung: Rung,
) {
    let Ok(entry) = serde_json::from_str::<Entry<'_>>(entry.get()) else {
        batch.unknown(&[at], rung, "the answer of ArangoDB cannot be read");
        return;
    };
    if !entry.error {
        let raw = if request.op == Op::Delete {
            entry.old
        } else {
            entry.new
        };
        let document = raw.and_then(|raw| serde_json::from_str::<Members<'_>>(raw.get()).ok());
        let done = match (&request.returning, document) {
            (Returning::Nothing, _) | (_, None) => WriteDone::rows(1),
            (_, Some(document)) => gave(request, &document),
        };
        batch.done(at, rung, done);
        return;
    }
    let failure = Failure::of_entry(&entry);
    let ignored = request.on_conflict == OnConflict::Ignore && is_key_taken(&failure);
    if ignored || (failure.number == MISSING && request.op != Op::Insert) {
        batch.done(at, rung, none(request));
        return;
    }
    let Refusal { fault, scope } = refusal(&failure, &request.collection);
    match scope {
        Scope::Unknown => unknown(batch, request, &[at], rung, &fault),
        Scope::Database => batch.retry(&[at], &fault),
        Scope::Write if fault.may_retry() => batch.retry(&[at], &fault),
        Scope::Write | Scope::Request => batch.fail(at, Rung::Isolated, fault),
    }
}

fn gave(request: &DocumentRequest, document: &Members<'_>) -> WriteDone {
    WriteDone::returning(1, decode::returned(&request.returning, document))
}

/// Concludes an array that failed as a whole. Returns the fault if one of its entries may be the
/// reason.
pub(super) fn refused(
    batch: &mut Batch<'_>,
    request: &DocumentRequest,
    items: &[usize],
    failure: &Failure,
    rung: Rung,
) -> Result<Option<Fault>, Stop> {
    let Refusal { fault, scope } = refusal(failure, &request.collection);
    match scope {
        Scope::Write if fault.may_retry() => batch.retry(items, &fault),
        Scope::Write => return Ok(Some(fault)),
        Scope::Request => batch.fail_all(items, rung, &fault),
        Scope::Database => return Err(Stop(fault)),
        Scope::Unknown => unknown(batch, request, items, rung, &fault),
    }
    Ok(None)
}

/// Concludes a request without an answer. Reads may be repeated.
pub(super) fn lost(
    batch: &mut Batch<'_>,
    request: &DocumentRequest,
    items: &[usize],
    loss: Loss,
    rung: Rung,
) -> Stop {
    match (request.op, loss) {
        (Op::Get, Loss::Unanswered(why) | Loss::TooLarge(why)) => Stop(Fault::unavailable(why)),
        (_, loss) => batch.lost(items, rung, loss),
    }
}

/// Concludes a request of which an unknown part was executed. Reads may be repeated.
fn unknown(
    batch: &mut Batch<'_>,
    request: &DocumentRequest,
    items: &[usize],
    rung: Rung,
    fault: &Fault,
) {
    match request.op {
        Op::Get => {
            let fault = Fault::unavailable(fault.message.clone()).with_detail(fault.detail());
            batch.retry(items, &fault);
        }
        _ => batch.unknown(items, rung, &fault.message),
    }
}
