//! `POST /_api/document/{collection}` and `POST /_api/document?collection=NAME`

use windrow_core::Op;
use windrow_http::extension::{Feed, Whole, WholeAnswer};

use crate::error::Error;
use crate::request::DocumentRequest;
use crate::{answer, many, writes};

pub(crate) async fn run(
    request: &DocumentRequest<'_>,
    feed: &mut Feed<'_>,
) -> Result<WholeAnswer, Error> {
    let app = request.context.app;
    let whole = feed.all(app.body_limit(), app.budget()).await?;
    if whole.bytes.trim_ascii_start().starts_with(b"[") {
        return many::create(request, whole).await;
    }
    app.row_limit().check(whole.bytes.len() as u64)?;
    let plan = request.plan(Op::Insert)?;
    let Whole { bytes, permit } = whole;
    let (key, write) = writes::insert(request, &plan, &bytes)?;
    // From here on the memory permit covers the row, not the body.
    drop(bytes);
    let ack = request.insert_ack()?;
    let done = request.context.write(ack, write, permit).await?;
    let status = DocumentRequest::insert_status(ack);
    Ok(answer::one(request, status, &key, &done))
}
