//! `GET` and `HEAD /_api/document/{collection}/{key}`

use http::StatusCode;
use http::header::{ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use windrow_core::{Op, Permit};
use windrow_http::extension::{Ack, WholeAnswer, whole_json};

use crate::answer::{self, Row};
use crate::error::{self, Error};
use crate::request::DocumentRequest;
use crate::{key, writes};

pub(crate) async fn one(request: &DocumentRequest<'_>, raw: &str) -> Result<WholeAnswer, Error> {
    let key = key::of_path(raw)?;
    let plan = request.plan(Op::Get)?;
    let write = writes::of_key(&plan, &key);
    let done = request
        .context
        .write(Ack::Commit, write, Permit::empty())
        .await?;
    let row = Row::of(&done).ok_or_else(|| error::not_found(&key))?;
    let condition = |name: HeaderName| {
        let value = request.context.head.headers.get(name)?;
        Some(value.as_bytes().trim_ascii())
    };
    let is_this = |tag: &[u8]| {
        let tag = tag.strip_prefix(b"\"").unwrap_or(tag);
        tag.strip_suffix(b"\"").unwrap_or(tag) == row.revision.as_bytes()
    };
    let mut answer = if condition(IF_MATCH).is_some_and(|tag| !is_this(tag)) {
        changed(request, &key, &row)
    } else if condition(IF_NONE_MATCH).is_some_and(is_this) {
        let mut answer = whole_json(StatusCode::NOT_MODIFIED, &b""[..]);
        answer.headers_mut().remove(http::header::CONTENT_TYPE);
        answer
    } else {
        let mut body = Vec::with_capacity(256);
        row.write(&mut body, request, &key);
        whole_json(StatusCode::OK, body)
    };
    answer::set(&mut answer, ETAG, &format!("\"{}\"", row.revision));
    Ok(answer)
}

/// The document has another revision than the one that was asked for.
fn changed(request: &DocumentRequest<'_>, key: &str, row: &Row<'_>) -> WholeAnswer {
    let mut body = format!(
        "{{\"error\":true,\"code\":412,\"errorNum\":{},\"errorMessage\":\"precondition failed\",",
        error::CONFLICT
    )
    .into_bytes();
    answer::identity(&mut body, request, key, Some(&row.revision));
    body.push(b'}');
    whole_json(StatusCode::PRECONDITION_FAILED, body)
}
