//! Requests within a request: a multipart envelope, in the format of `windrow_envelopes`.
//!
//! The envelope is read and checked as a whole, up to `http.max_body`, before any part of it is
//! executed, so a malformed one has no effect. Then its parts are answered as requests of their own
//! ([`PartAnswerer`]), many at once, so that the lane joins them. Each begins when the one before
//! it has submitted its writes, so that writes of one key keep their order.

mod body;
mod collected;
mod part;
mod run;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use windrow_core::Fault;
use windrow_envelopes::{Boundary, ERRORS, Malformed};

use crate::answers::{self, Answer, AnswerBody, Refusal};
use crate::bodies::charge::Charge;
use crate::bodies::{Feed, kind};
use crate::request::RequestContext;

use collected::CollectedAnswers;

pub(crate) use part::{Part, PartAnswerer};

/// True if the content type says that the body is an envelope.
pub(crate) fn is_one(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let kind = kind.and_then(|kind| kind.split(|b| *b == b';').next());
    kind.and_then(|kind| std::str::from_utf8(kind).ok())
        .is_some_and(windrow_envelopes::is_envelope)
}

/// Returns the refusal of a part that is an envelope itself.
pub(crate) fn nested() -> Refusal {
    Refusal::protocol(
        StatusCode::BAD_REQUEST,
        "an envelope within an envelope is not executed: put its parts into the outer one",
    )
}

/// Executes the parts and puts their answers into an envelope with the same boundary, in the order
/// of the parts.
///
/// # Errors
/// 400 for an invalid envelope, 413 for one that is too large, 415 for another kind of body, 429 if
/// the budget is full; no part was executed then.
pub(crate) async fn run(
    answerer: &impl PartAnswerer,
    request: &RequestContext<'_>,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let app = request.app;
    let headers = &request.head.headers;
    kind::check_encoding(headers)?;
    let named = Boundary::of(headers)?;
    let whole = feed.all(app.body_limit(), app.budget()).await?;
    let boundary = match named {
        Some(boundary) => boundary,
        None => Boundary::peek(headers, &whole.bytes)?,
    };
    let dashed = boundary.dashed();
    let pieces = windrow_envelopes::split(&whole.bytes, &dashed, app.config.max_atomic_rows)?;
    let charge = Charge::new(app.budget().clone());
    let collected = CollectedAnswers::new(&dashed, pieces.len(), charge)?;
    let collected = run::all(answerer, request, feed.connection(), pieces, collected).await;
    drop(whole);
    let errors = collected.errors();
    let body = AnswerBody::chunked(collected.into_body());
    let mut answer = answers::with_type(StatusCode::OK, boundary.content_type().clone(), body);
    if errors > 0 {
        answer.headers_mut().insert(ERRORS, errors.into());
    }
    Ok(answer)
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        match malformed.status {
            StatusCode::PAYLOAD_TOO_LARGE => Fault::too_large(malformed.message).into(),
            status => Self::protocol(status, malformed.message),
        }
    }
}
