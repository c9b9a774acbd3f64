//! `PATCH` and `DELETE /_api/document/{collection}/{key}`

use http::StatusCode;
use windrow_core::{Op, Permit};

use super::document::Document;
use super::request::DocumentRequest;
use super::{answer, error, key, writes};
use crate::answers::{Answer, Refusal};
use crate::bodies::Feed;
use crate::bodies::whole::Whole;

pub(super) async fn update(
    request: &DocumentRequest<'_>,
    raw: &str,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let key = key::of_path(raw)?;
    let plan = request.plan(Op::Update)?;
    let app = request.context.app;
    let Whole { bytes, permit } = feed.all(app.row_limit(), app.budget()).await?;
    let document = Document::read(&bytes, plan.guess().as_ref())?;
    // The permit is for the row from here on.
    drop(bytes);
    document.check_same(&key)?;
    let write = writes::change(request, &plan, document, &key)?;
    let done = request.context.write(write, permit).await?;
    error::check_found(&key, done.rows)?;
    Ok(answer::one(request, StatusCode::CREATED, &key, &done))
}

pub(super) async fn remove(request: &DocumentRequest<'_>, raw: &str) -> Result<Answer, Refusal> {
    let key = key::of_path(raw)?;
    let plan = request.plan(Op::Delete)?;
    let write = writes::of_key(&plan, &key);
    let done = request.context.write(write, Permit::empty()).await?;
    error::check_found(&key, done.rows)?;
    Ok(answer::one(request, StatusCode::OK, &key, &done))
}
