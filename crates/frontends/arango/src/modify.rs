//! `PATCH` and `DELETE /_api/document/{collection}/{key}`

use http::StatusCode;
use windrow_core::{Op, Permit};
use windrow_http::extension::{Ack, Feed, Whole, WholeAnswer};

use crate::document::Document;
use crate::error::{self, Error};
use crate::request::DocumentRequest;
use crate::{answer, key, writes};

pub(crate) async fn update(
    request: &DocumentRequest<'_>,
    raw: &str,
    feed: &mut Feed<'_>,
) -> Result<WholeAnswer, Error> {
    let key = key::of_path(raw)?;
    let plan = request.plan(Op::Update)?;
    let app = request.context.app;
    let Whole { bytes, permit } = feed.all(app.row_limit(), app.budget()).await?;
    let document = Document::read(&bytes, plan.guess().as_ref())?;
    // From here on the memory permit covers the row, not the body.
    drop(bytes);
    document.check_same(&key)?;
    let write = writes::change(request, &plan, document, &key)?;
    let done = request.context.write(Ack::Commit, write, permit).await?;
    error::check_found(&key, done.rows)?;
    Ok(answer::one(request, StatusCode::CREATED, &key, &done))
}

pub(crate) async fn remove(request: &DocumentRequest<'_>, raw: &str) -> Result<WholeAnswer, Error> {
    let key = key::of_path(raw)?;
    let plan = request.plan(Op::Delete)?;
    let write = writes::of_key(&plan, &key);
    let done = request
        .context
        .write(Ack::Commit, write, Permit::empty())
        .await?;
    error::check_found(&key, done.rows)?;
    Ok(answer::one(request, StatusCode::OK, &key, &done))
}
