//! Sends the writes of a part as one array.
//!
//! The server may process the documents of an array in any order and in parallel, so no key occurs
//! twice in one array.

use std::borrow::Cow;

use bytes::Bytes;
use http::Method;
use windrow_core::{Fault, Op, Rung};
use windrow_database::web::{Batch, Loss, Stop, push_text};

use super::connection::Connection;
use super::plan::DocumentRequest;
use super::settle;
use crate::answer::Failure;
use crate::fault::{DUPLICATE_NAME, NO_COLLECTION};

impl Connection {
    /// Sends an array. Returns a fault if one of its entries made the server refuse all of it.
    pub(super) async fn send(
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
                    settle::answered(batch, request, items, &answer, rung);
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
                Err(loss) => return Err(settle::lost(batch, request, items, loss, rung)),
            }
        };
        settle::refused(batch, request, items, &failure, rung)
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
            // Another client created it first.
            Ok(Err(failure)) if failure.number == DUPLICATE_NAME => Ok(None),
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

fn body(batch: &Batch<'_>, request: &DocumentRequest, items: &[usize]) -> Bytes {
    let mut body = Vec::new();
    for write in items.iter().filter_map(|at| batch.write(*at)) {
        body.push(if body.is_empty() { b'[' } else { b',' });
        // Values that cannot be written were refused by `plan`.
        if request
            .push(&write.shape.columns, write.row(), &mut body)
            .is_err()
        {
            body.extend_from_slice(b"null");
        }
    }
    body.push(b']');
    Bytes::from(body)
}
