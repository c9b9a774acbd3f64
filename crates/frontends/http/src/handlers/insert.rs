//! `POST /v1/tables/{table}/rows`

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use windrow_core::{Fault, Op, Permit, Write, WriteDone};

use crate::ack::Ack;
use crate::answers::{self, Answer, Refusal, json};
use crate::bodies::Feed;
use crate::bodies::kind::{self, BodyKind};
use crate::handlers::{atomic, pump};
use crate::plan::Plan;
use crate::request::RequestContext;
use crate::rows::object::{self, Columns};
use crate::rows::{RowStream, too_blank};

pub(crate) async fn run(
    request: &RequestContext<'_>,
    table: &str,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let kind = kind::of(&request.head.headers)?;
    let app = request.app;
    let plan = request.own_plan(Op::Insert, table)?;
    let options = &plan.options;
    let what = (Op::Insert, options.on_conflict, &options.returning);
    let ack = app.ack(what, options.atomic, options.ack)?;
    let max_row = app.config.max_row;
    let (first, stream) = match kind {
        BodyKind::Ndjson => (Bytes::new(), RowStream::ndjson(&plan, max_row)),
        BodyKind::Csv => {
            let style = &plan.options.csv;
            (Bytes::new(), RowStream::csv(&plan, style, max_row))
        }
        BodyKind::Json => {
            let first = beginning(feed, max_row).await?;
            match first.trim_ascii_start().first() {
                Some(b'[') => (first, RowStream::array(&plan, max_row)),
                None => return Err(empty()),
                // For anything but an object, the reader of objects reports the error.
                Some(_) => return one(request, ack, &plan, first, feed).await,
            }
        }
    };
    if plan.options.atomic {
        Box::pin(atomic::run(request, ack, &plan, stream, first, feed)).await
    } else {
        Box::pin(pump::run(request, ack, &plan, stream, first, feed)).await
    }
}

/// Returns the first chunk that is not blank; an empty one at the end of the body.
///
/// # Errors
/// 413 if there are more blanks before it than a row may have bytes.
async fn beginning(feed: &mut Feed<'_>, max_row: usize) -> Result<Bytes, Refusal> {
    let mut blanks = 0;
    while let Some(chunk) = feed.chunk().await? {
        if !chunk.trim_ascii_start().is_empty() {
            return Ok(chunk);
        }
        blanks += chunk.len();
        if blanks > max_row {
            return Err(too_blank(max_row).into());
        }
    }
    Ok(Bytes::new())
}

fn empty() -> Refusal {
    Fault::new(
        windrow_core::FaultClass::Invalid,
        "22P02",
        "the body is empty; send a JSON object or an array of them",
    )
    .into()
}

/// Writes the row of a body that is one object.
async fn one(
    request: &RequestContext<'_>,
    ack: Ack,
    plan: &Plan,
    first: Bytes,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let app = request.app;
    let (write, held) = if feed.has_ended() && first.len() <= app.config.max_row {
        let write = parse(plan, &first)?;
        // It is in the connection's buffer, which can be reused from here on.
        drop(first);
        (write, Permit::empty())
    } else {
        let rest = feed.rest(first, app.row_limit(), app.budget());
        let whole = Box::pin(rest).await?;
        (parse(plan, &whole.bytes)?, whole.permit)
    };
    let done = request.write(ack, write, held).await?;
    Ok(match ack {
        Ack::Commit => inserted(&done),
        Ack::Spool => answers::of_json(ack.status(), &b"{\"accepted\":1}"[..]),
    })
}

fn parse(plan: &Plan, text: &[u8]) -> Result<Write, Refusal> {
    let guess = plan.guess();
    let (columns, values) = object::read(text, guess.as_ref(), 0)?;
    let shape = match (columns, guess) {
        (Columns::Guessed, Some(shape)) => shape,
        (Columns::Guessed, None) => plan.shape(Vec::new()),
        (Columns::Named(names), _) => plan.shape(names),
    };
    Ok(Write::new(Arc::clone(&shape), values))
}

fn inserted(done: &WriteDone) -> Answer {
    match done {
        WriteDone {
            rows: 1,
            returned: None,
            ..
        } => answers::of_json(StatusCode::CREATED, &b"{\"rows\":1}"[..]),
        WriteDone { rows: 0, .. } => answers::of_json(StatusCode::OK, &b"{\"rows\":0}"[..]),
        done => {
            let mut body = Vec::with_capacity(128);
            body.push(b'{');
            json::done(&mut body, Ack::Commit, done);
            body.push(b'}');
            answers::of_json(StatusCode::CREATED, body)
        }
    }
}
