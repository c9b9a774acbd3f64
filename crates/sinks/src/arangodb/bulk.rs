//! A step: one array, and what is set apart when it fails.
//!
//! The server may work on the documents of an array in any order and at once, so no key is twice in
//! one.

use bytes::Bytes;
use http::Method;
use serde_json::value::RawValue;
use windrow_core::{Done, Fault, OnConflict, Op, Returning, Rung, Verdict, Write};

use super::answer::{Document, Entry, Failure};
use super::decode;
use super::executor::{Connection, Stop};
use super::fault::{MISSING, NO_COLLECTION, is_key_taken, meaning};
use super::form::Form;
use super::place::none;
use crate::web::{Answer, Batch, Loss, Meaning, push_text};

/// The most bytes of values in one request.
const REQUEST: usize = 16 << 20;

/// The most bytes of one document. ArangoDB takes requests of up to 512 MiB.
const DOCUMENT: usize = 256 << 20;

/// Keys that are read at once: what comes back is not known before.
const READS: usize = 1_000;

impl Connection {
    /// Executes writes of one form.
    pub(super) async fn step(
        &mut self,
        batch: &mut Batch<'_>,
        form: &Form,
        items: &[usize],
    ) -> Result<(), Stop> {
        let chunks = chunks(batch, form, items);
        let mut work: Vec<_> = chunks
            .into_iter()
            .rev()
            .map(|chunk| (chunk, false))
            .collect();
        while let Some((items, isolated)) = work.pop() {
            let rung = match items.as_slice() {
                _ if isolated => Rung::Isolated,
                [_] if batch.len() == 1 => Rung::Solo,
                [_] => Rung::Grouped,
                _ => Rung::Fused,
            };
            if let Some(fault) = self.send(batch, form, &items, rung).await? {
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

    /// Sends an array. A fault comes back where one of its entries had all of it refused.
    async fn send(
        &mut self,
        batch: &mut Batch<'_>,
        form: &Form,
        items: &[usize],
        rung: Rung,
    ) -> Result<Option<Fault>, Stop> {
        let body = body(batch, form, items);
        let mut created = !self.creates || form.op != Op::Insert;
        let failure = loop {
            let heard = self.session.ask(
                form.method.clone(),
                &form.path,
                body.clone(),
                &mut batch.tally,
            );
            match heard.await {
                Ok(Ok(answer)) => {
                    absorb(batch, form, items, &answer, rung);
                    return Ok(None);
                }
                Ok(Err(failure)) if failure.number == NO_COLLECTION && !created => {
                    created = true;
                    if let Some(failure) = self.create(batch, form).await? {
                        break failure;
                    }
                }
                Ok(Err(failure)) => break failure,
                Err(Loss::TooLarge(why)) if form.op == Op::Get => {
                    return Ok(Some(Fault::too_large(why)));
                }
                Err(loss) => return Err(lost(batch, form, items, loss, rung)),
            }
        };
        match meaning(&failure, &form.collection) {
            Meaning::Refused {
                fault,
                request: false,
            } => return Ok(Some(fault)),
            Meaning::Refused { fault, .. } => {
                items
                    .iter()
                    .for_each(|at| batch.fail(*at, rung, fault.clone()));
            }
            Meaning::Conflict(fault) => again(batch, items, &fault),
            Meaning::Away(fault) => return Err(Stop(fault)),
            Meaning::Unsure(fault) if form.op == Op::Get => {
                again(batch, items, &unavailable(&fault));
            }
            Meaning::Unsure(fault) => unknown(batch, items, &fault.message, rung),
        }
        Ok(None)
    }

    /// Makes the collection of a form. What is there already is no failure.
    async fn create(
        &mut self,
        batch: &mut Batch<'_>,
        form: &Form,
    ) -> Result<Option<Failure>, Stop> {
        let mut body = b"{\"name\":".to_vec();
        push_text(&mut body, &form.collection);
        body.push(b'}');
        let heard = self.session.ask(
            Method::POST,
            "/_api/collection",
            Bytes::from(body),
            &mut batch.tally,
        );
        match heard.await {
            Ok(Ok(_)) => {
                tracing::info!(collection = &*form.collection, "created");
                Ok(None)
            }
            // A duplicate name: somebody else was quicker.
            Ok(Err(failure)) if failure.number == 1207 => Ok(None),
            Ok(Err(mut failure)) => {
                failure.message = format!(
                    "the collection {} cannot be created: {}",
                    form.collection, failure.message
                );
                Ok(Some(failure))
            }
            Err(loss) => Err(Stop(loss.harmless())),
        }
    }
}

/// Pieces of a step that fit into one request each.
fn chunks(batch: &mut Batch<'_>, form: &Form, items: &[usize]) -> Vec<Vec<usize>> {
    let most = if form.op == Op::Get {
        READS
    } else {
        usize::MAX
    };
    let mut chunks: Vec<Vec<usize>> = Vec::new();
    let mut size = 0;
    for at in items {
        let bytes = batch.write(*at).map_or(0, Write::bytes);
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

fn body(batch: &Batch<'_>, form: &Form, items: &[usize]) -> Bytes {
    let mut body = Vec::new();
    for write in items.iter().filter_map(|at| batch.write(*at)) {
        body.push(if body.is_empty() { b'[' } else { b',' });
        // What cannot be written was refused when the write was placed.
        if form
            .push(&write.shape.columns, &write.row, &mut body)
            .is_err()
        {
            body.extend_from_slice(b"null");
        }
    }
    body.push(b']');
    Bytes::from(body)
}

/// Tells each write what became of it.
fn absorb(batch: &mut Batch<'_>, form: &Form, items: &[usize], answer: &Answer, rung: Rung) {
    let entries: Vec<&RawValue> = serde_json::from_slice(&answer.body).unwrap_or_default();
    if entries.len() != items.len() {
        let why = "the answer of ArangoDB to an array is not one entry a document";
        match form.op {
            Op::Get => again(batch, items, &Fault::unavailable(why)),
            _ => unknown(batch, items, why, rung),
        }
        return;
    }
    batch.tally.commits += u32::from(form.op != Op::Get);
    for (at, entry) in items.iter().zip(entries) {
        match form.op {
            Op::Get => read(batch, form, *at, entry, rung),
            _ => told(batch, form, *at, entry, rung),
        }
    }
}

/// A document may have an attribute that is called `error`; what it certainly has is an `_id`.
fn read(batch: &mut Batch<'_>, form: &Form, at: usize, entry: &RawValue, rung: Rung) {
    let document: Document<'_> = serde_json::from_str(entry.get()).unwrap_or_default();
    if document.get("_id").is_some() && document.get("_rev").is_some() {
        batch.done(at, rung, gave(form, &document));
        return;
    }
    told(batch, form, at, entry, rung);
}

fn told(batch: &mut Batch<'_>, form: &Form, at: usize, entry: &RawValue, rung: Rung) {
    let Ok(entry) = serde_json::from_str::<Entry<'_>>(entry.get()) else {
        unknown(batch, &[at], "the answer of ArangoDB cannot be read", rung);
        return;
    };
    if !entry.error {
        let raw = if form.op == Op::Delete {
            entry.old
        } else {
            entry.new
        };
        let document = raw.and_then(|raw| serde_json::from_str::<Document<'_>>(raw.get()).ok());
        let done = match (&form.returning, document) {
            (Returning::Nothing, _) | (_, None) => Done::rows(1),
            (_, Some(document)) => gave(form, &document),
        };
        batch.done(at, rung, done);
        return;
    }
    let failure = Failure::of_entry(&entry);
    let ignored = form.on_conflict == OnConflict::Ignore && is_key_taken(&failure);
    if ignored || (failure.number == MISSING && form.op != Op::Insert) {
        batch.done(at, rung, none(form));
        return;
    }
    match meaning(&failure, &form.collection) {
        Meaning::Refused { fault, .. } => batch.fail(at, Rung::Isolated, fault),
        Meaning::Conflict(fault) | Meaning::Away(fault) => again(batch, &[at], &fault),
        Meaning::Unsure(fault) if form.op == Op::Get => again(batch, &[at], &unavailable(&fault)),
        Meaning::Unsure(fault) => unknown(batch, &[at], &fault.message, rung),
    }
}

fn gave(form: &Form, document: &Document<'_>) -> Done {
    Done {
        rows: 1,
        returned: Some(Box::new(decode::returned(&form.returning, document))),
        told: None,
    }
}

fn again(batch: &mut Batch<'_>, items: &[usize], fault: &Fault) {
    for at in items {
        batch.conclude(*at, Verdict::Again(fault.clone()));
    }
}

fn unavailable(fault: &Fault) -> Fault {
    Fault::unavailable(fault.message.clone()).with_detail(fault.detail())
}

/// There is no answer. What left may have been written; what only reads may be asked again.
fn lost(batch: &mut Batch<'_>, form: &Form, items: &[usize], loss: Loss, rung: Rung) -> Stop {
    match loss {
        Loss::NotSent(fault) => Stop(fault),
        Loss::Unanswered(why) | Loss::TooLarge(why) => {
            if form.op != Op::Get {
                unknown(batch, items, &why, rung);
            }
            Stop(Fault::unavailable(why))
        }
    }
}

/// It cannot be told whether the documents were written.
fn unknown(batch: &mut Batch<'_>, items: &[usize], why: &str, rung: Rung) {
    let message = format!("it cannot be known whether this was written: {why}");
    for at in items {
        batch.fail(*at, rung, Fault::unknown(message.clone()));
    }
}
