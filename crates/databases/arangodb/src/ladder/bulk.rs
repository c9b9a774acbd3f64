//! Executes a step: sends one array, and isolates documents if the whole array fails.
//!
//! The server may process the documents of an array in any order and in parallel, so no key occurs
//! twice in one array.

use std::borrow::Cow;

use bytes::Bytes;
use http::Method;
use serde_json::value::RawValue;
use windrow_core::{Fault, OnConflict, Op, Returning, RowDone, RowWrite, Rung, Verdict, Work as _};
use windrow_database::web::{Answer, Batch, Loss, Meaning, push_text};

use super::bind::none;
use super::connection::{Connection, Stop};
use super::request::DocumentRequest;
use crate::answer::{Document, Entry, Failure};
use crate::fault::{MISSING, NO_COLLECTION, is_key_taken, meaning};
use crate::values::decode;

/// Bytes of values in the largest request.
const REQUEST: usize = 16 << 20;

/// Bytes of the largest document. ArangoDB accepts requests of up to 512 MiB.
const DOCUMENT: usize = 256 << 20;

/// The largest number of keys in one reading request, because the size of its answer is not known.
const READS: usize = 1_000;

impl Connection {
    /// Executes writes that share method and path.
    pub(super) async fn step(
        &mut self,
        batch: &mut Batch<'_>,
        request: &DocumentRequest,
        items: &[usize],
    ) -> Result<(), Stop> {
        let chunks = chunks(batch, request, items);
        let mut work: Vec<_> = chunks
            .into_iter()
            .rev()
            .map(|chunk| (chunk, false))
            .collect();
        while let Some((items, isolated)) = work.pop() {
            let rung = match items.as_slice() {
                _ if isolated => Rung::Isolated,
                [_] if batch.is_single() => Rung::Solo,
                [_] => Rung::Grouped,
                _ => Rung::Fused,
            };
            if let Some(fault) = self.send(batch, request, &items, rung).await? {
                if let [at] = items.as_slice() {
                    batch.fail(*at, rung, fault);
                    continue;
                }
                let (first, second) = items.split_at(items.len() / 2);
                work.push((second.to_vec(), true));
                work.push((first.to_vec(), true));
            }
        }
        Ok(())
    }

    /// Sends an array. Returns a fault if one of its entries made the server refuse all of it.
    async fn send(
        &mut self,
        batch: &mut Batch<'_>,
        request: &DocumentRequest,
        items: &[usize],
        rung: Rung,
    ) -> Result<Option<Fault>, Stop> {
        let body = body(batch, request, items);
        let path = match self.syncs && request.op != Op::Get {
            true => Cow::Owned(request.synced_path()),
            false => Cow::Borrowed(&*request.path),
        };
        let mut created = !self.creates || request.op != Op::Insert;
        let failure = loop {
            let answered = self.session.ask(
                request.method.clone(),
                &path,
                body.clone(),
                &mut batch.tally,
            );
            match answered.await {
                Ok(Ok(answer)) => {
                    tell_documents(batch, request, items, &answer, rung);
                    return Ok(None);
                }
                Ok(Err(failure)) if failure.number == NO_COLLECTION && !created => {
                    created = true;
                    if let Some(failure) = self.create(batch, request).await? {
                        break failure;
                    }
                }
                Ok(Err(failure)) => break failure,
                Err(Loss::TooLarge(why)) if request.op == Op::Get => {
                    return Ok(Some(Fault::too_large(why)));
                }
                Err(loss) => return Err(lost(batch, request, items, loss, rung)),
            }
        };
        match meaning(&failure, &request.collection) {
            Meaning::Refused {
                fault,
                request: false,
            } => return Ok(Some(fault)),
            Meaning::Refused { fault, .. } => {
                items
                    .iter()
                    .for_each(|at| batch.fail(*at, rung, fault.clone()));
            }
            Meaning::Conflict(fault) => retry(batch, items, &fault),
            Meaning::Away(fault) => return Err(Stop(fault)),
            Meaning::Unsure(fault) if request.op == Op::Get => {
                retry(batch, items, &unavailable(&fault));
            }
            Meaning::Unsure(fault) => unknown(batch, items, &fault.message, rung),
        }
        Ok(None)
    }

    /// Creates the collection of the writes. A collection that exists already is no failure.
    async fn create(
        &mut self,
        batch: &mut Batch<'_>,
        request: &DocumentRequest,
    ) -> Result<Option<Failure>, Stop> {
        let mut body = b"{\"name\":".to_vec();
        push_text(&mut body, &request.collection);
        body.push(b'}');
        let answered = self.session.ask(
            Method::POST,
            "/_api/collection",
            Bytes::from(body),
            &mut batch.tally,
        );
        match answered.await {
            Ok(Ok(_)) => {
                tracing::info!(collection = &*request.collection, "created");
                Ok(None)
            }
            // A duplicate name: another client created it first.
            Ok(Err(failure)) if failure.number == 1207 => Ok(None),
            Ok(Err(mut failure)) => {
                failure.message = format!(
                    "the collection {} cannot be created: {}",
                    request.collection, failure.message
                );
                Ok(Some(failure))
            }
            Err(loss) => Err(Stop(loss.harmless())),
        }
    }
}

/// Splits a step into pieces that fit into one request each.
fn chunks(batch: &mut Batch<'_>, request: &DocumentRequest, items: &[usize]) -> Vec<Vec<usize>> {
    let most = if request.op == Op::Get {
        READS
    } else {
        usize::MAX
    };
    let mut chunks: Vec<Vec<usize>> = Vec::new();
    let mut size = 0;
    for at in items {
        let bytes = batch.write(*at).map_or(0, RowWrite::bytes);
        if bytes > DOCUMENT {
            let message = format!(
                "a document of {bytes} bytes is too large; ArangoDB is sent at most {DOCUMENT}"
            );
            batch.fail(*at, Rung::Solo, Fault::too_large(message));
            continue;
        }
        match chunks.last_mut() {
            Some(chunk) if size + bytes <= REQUEST && chunk.len() < most => chunk.push(*at),
            _ => {
                size = 0;
                chunks.push(vec![*at]);
            }
        }
        size += bytes;
    }
    chunks
}

fn body(batch: &Batch<'_>, request: &DocumentRequest, items: &[usize]) -> Bytes {
    let mut body = Vec::new();
    for write in items.iter().filter_map(|at| batch.write(*at)) {
        body.push(if body.is_empty() { b'[' } else { b',' });
        // Values that cannot be written were refused earlier, by `bind`.
        if request
            .push(&write.shape.columns, &write.row, &mut body)
            .is_err()
        {
            body.extend_from_slice(b"null");
        }
    }
    body.push(b']');
    Bytes::from(body)
}

/// Gives each write its outcome.
fn tell_documents(
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
            Op::Get => retry(batch, items, &Fault::unavailable(why)),
            _ => unknown(batch, items, why, rung),
        }
        return;
    }
    batch.tally.commits += u32::from(request.op != Op::Get);
    for (at, entry) in items.iter().zip(entries) {
        match request.op {
            Op::Get => read(batch, request, *at, entry, rung),
            _ => tell_written(batch, request, *at, entry, rung),
        }
    }
}

/// Gives a read its outcome. A document may have an attribute called `error`, but it always has an
/// `_id`.
fn read(batch: &mut Batch<'_>, request: &DocumentRequest, at: usize, entry: &RawValue, rung: Rung) {
    let document: Document<'_> = serde_json::from_str(entry.get()).unwrap_or_default();
    if document.get("_id").is_some() && document.get("_rev").is_some() {
        batch.done(at, rung, gave(request, &document));
        return;
    }
    tell_written(batch, request, at, entry, rung);
}

fn tell_written(
    batch: &mut Batch<'_>,
    request: &DocumentRequest,
    at: usize,
    entry: &RawValue,
    rung: Rung,
) {
    let Ok(entry) = serde_json::from_str::<Entry<'_>>(entry.get()) else {
        unknown(batch, &[at], "the answer of ArangoDB cannot be read", rung);
        return;
    };
    if !entry.error {
        let raw = if request.op == Op::Delete {
            entry.old
        } else {
            entry.new
        };
        let document = raw.and_then(|raw| serde_json::from_str::<Document<'_>>(raw.get()).ok());
        let done = match (&request.returning, document) {
            (Returning::Nothing, _) | (_, None) => RowDone::rows(1),
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
    match meaning(&failure, &request.collection) {
        Meaning::Refused { fault, .. } => batch.fail(at, Rung::Isolated, fault),
        Meaning::Conflict(fault) | Meaning::Away(fault) => retry(batch, &[at], &fault),
        Meaning::Unsure(fault) if request.op == Op::Get => {
            retry(batch, &[at], &unavailable(&fault));
        }
        Meaning::Unsure(fault) => unknown(batch, &[at], &fault.message, rung),
    }
}

fn gave(request: &DocumentRequest, document: &Document<'_>) -> RowDone {
    RowDone {
        rows: 1,
        returned: Some(Box::new(decode::returned(&request.returning, document))),
    }
}

fn retry(batch: &mut Batch<'_>, items: &[usize], fault: &Fault) {
    for at in items {
        batch.conclude(*at, Verdict::RolledBack(fault.clone()));
    }
}

fn unavailable(fault: &Fault) -> Fault {
    Fault::unavailable(fault.message.clone()).with_detail(fault.detail())
}

/// Concludes a request without an answer. Writes that were sent may have been executed; reads may
/// be repeated.
fn lost(
    batch: &mut Batch<'_>,
    request: &DocumentRequest,
    items: &[usize],
    loss: Loss,
    rung: Rung,
) -> Stop {
    match loss {
        Loss::NotSent(fault) => Stop(fault),
        Loss::Unanswered(why) | Loss::TooLarge(why) => {
            if request.op != Op::Get {
                unknown(batch, items, &why, rung);
            }
            Stop(Fault::unavailable(why))
        }
    }
}

/// Concludes writes whose outcome is unknown.
fn unknown(batch: &mut Batch<'_>, items: &[usize], why: &str, rung: Rung) {
    let message = format!("it cannot be known whether this was written: {why}");
    for at in items {
        batch.fail(*at, rung, Fault::unknown(message.clone()));
    }
}
