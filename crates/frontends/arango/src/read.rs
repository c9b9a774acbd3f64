//! `GET` and `HEAD /_api/document/{collection}/{key}`

use http::header::{ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
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
    let headers = &request.context.head.headers;
    let names = |name| names(headers, name, row.revision.as_bytes());
    let mut answer = if names(IF_MATCH) == Some(false) {
        changed(request, &key, &row)
    } else if names(IF_NONE_MATCH) == Some(true) {
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

/// Returns true if one of a header's tags is `*` or this revision (RFC 9110, 13.1), false if none
/// is, and `None` without the header. Clients of ArangoDB send tags with and without quotes. A weak
/// tag counts only in `If-None-Match`.
fn names(headers: &HeaderMap, header: HeaderName, revision: &[u8]) -> Option<bool> {
    let weak = header == IF_NONE_MATCH;
    let is_this = |tag: &[u8]| {
        let tag = tag.trim_ascii();
        let tag = tag.strip_prefix(b"W/").filter(|_| weak).unwrap_or(tag);
        let inner = tag.strip_prefix(b"\"").unwrap_or(tag);
        tag == b"*" || inner.strip_suffix(b"\"").unwrap_or(inner) == revision
    };
    let mut given = headers.get_all(header).iter().peekable();
    given.peek()?;
    Some(given.any(|value| value.as_bytes().split(|byte| *byte == b',').any(is_this)))
}

/// Returns the answer to a request for another revision than the document has.
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
