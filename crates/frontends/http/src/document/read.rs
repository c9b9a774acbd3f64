//! `GET` and `HEAD /_api/document/{collection}/{key}`

use http::StatusCode;
use http::header::{ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use windrow_core::{Op, Permit, Value, Write};

use super::answer::{self, Row};
use super::{Door, error, key, modify};
use crate::answer::{self as told, Answer, Refusal};

pub(super) async fn one(door: &Door<'_>, raw: &str) -> Result<Answer, Refusal> {
    let key = key::of_path(raw)?;
    let plan = door.plan(Op::Get)?;
    let write = Write::new(modify::bare(&plan), [Value::Text(key.clone())]);
    let done = door.write(write, Permit::empty()).await?;
    let row = Row::of(&done).ok_or_else(|| error::not_found(&key))?;
    let condition = |name: HeaderName| {
        let value = door.ask.head.headers.get(name)?;
        Some(value.as_bytes().trim_ascii())
    };
    let is_this = |tag: &[u8]| {
        let tag = tag.strip_prefix(b"\"").unwrap_or(tag);
        tag.strip_suffix(b"\"").unwrap_or(tag) == row.revision.as_bytes()
    };
    let mut answer = if condition(IF_MATCH).is_some_and(|tag| !is_this(tag)) {
        changed(door, &key, &row)
    } else if condition(IF_NONE_MATCH).is_some_and(is_this) {
        let mut answer = told::of_json(StatusCode::NOT_MODIFIED, &b""[..]);
        answer.headers_mut().remove(http::header::CONTENT_TYPE);
        answer
    } else {
        let mut body = Vec::with_capacity(256);
        row.write(&mut body, door, &key);
        told::of_json(StatusCode::OK, body)
    };
    answer::set(&mut answer, ETAG, &format!("\"{}\"", row.revision));
    Ok(answer)
}

/// The document has another revision than the one that was asked for.
fn changed(door: &Door<'_>, key: &str, row: &Row<'_>) -> Answer {
    let mut body = format!(
        "{{\"error\":true,\"code\":412,\"errorNum\":{},\"errorMessage\":\"precondition failed\",",
        error::CONFLICT
    )
    .into_bytes();
    answer::identity(&mut body, door, key, Some(&row.revision));
    body.push(b'}');
    told::of_json(StatusCode::PRECONDITION_FAILED, body)
}
