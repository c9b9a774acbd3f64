//! An answer and its body.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio_util::sync::CancellationToken;
use windrow_core::{AnswerPermit, AnswerRoom, SpoolPlace};

use crate::answers::chunks::{Chunks, PIECE_BYTES, Pieces};
use crate::answers::live::Live;
use crate::connection_state::{Answering, ConnectionState};

/// The header with a place in the spool after all rows of a request that it has accepted.
const PLACE: HeaderName = HeaderName::from_static("windrow-place");

/// The header that says that a part of a request was executed before, and not again.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer with its body.
pub(crate) type Answer = Response<AnswerBody>;

/// A complete body, or one that is written while it is sent.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    Whole(Bytes),
    /// A body written while it is sent. The second field is held until the last byte is written.
    Chunked(Box<dyn Chunks>, Option<Answering>),
    /// A body that continues until the client leaves.
    Live(Live),
}

impl AnswerBody {
    /// Returns a body that is written while it is sent.
    pub(crate) fn chunked(chunks: impl Chunks + 'static) -> Self {
        Self::Chunked(Box::new(chunks), None)
    }

    /// Counts a long complete body until it has been sent. `permit`: the bytes that were taken for
    /// it in advance.
    pub(crate) fn count(&mut self, room: &AnswerRoom, mut permit: AnswerPermit) {
        if let Self::Whole(bytes) = self
            && bytes.len() > PIECE_BYTES
        {
            permit.resize(room, bytes.len());
            *self = Self::chunked(Pieces::new(std::mem::take(bytes), permit));
        }
    }

    /// Registers the body with the connection, which then knows until when there is something to
    /// write. Returns false if the body is complete. A live body ends when `stop` is cancelled.
    pub(crate) fn keep(&mut self, state: &Arc<ConnectionState>, stop: &CancellationToken) -> bool {
        match self {
            Self::Whole(_) => return false,
            Self::Chunked(chunks, kept) => {
                let takes_room = chunks.takes_room();
                *kept = Some(Answering::new(Arc::clone(state), takes_room));
            }
            Self::Live(live) => live.keep(stop.clone(), Answering::live(Arc::clone(state))),
        }
        true
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => None,
            Self::Whole(bytes) => Some(std::mem::take(bytes)),
            Self::Chunked(chunks, _) => chunks.next_chunk(),
            Self::Live(live) => ready!(live.poll_chunk(cx)),
        };
        Poll::Ready(chunk.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Chunked(chunks, _) => chunks
                .length()
                .map_or_else(SizeHint::default, SizeHint::with_exact),
            Self::Live(_) => SizeHint::default(),
        }
    }
}

/// Returns an answer with a complete JSON body.
pub fn whole_json(status: StatusCode, body: impl Into<Bytes>) -> Response<Bytes> {
    with_type(status, JSON, body.into())
}

/// Returns an answer of JSON.
pub(crate) fn of_json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    whole_json(status, body).map(AnswerBody::Whole)
}

/// Returns an answer of JSON that is written while it is sent.
pub(crate) fn chunked_json(status: StatusCode, chunks: impl Chunks + 'static) -> Answer {
    with_type(status, JSON, AnswerBody::chunked(chunks))
}

/// Returns an answer of another content type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let kind = HeaderValue::from_static(kind);
    with_type(status, kind, AnswerBody::Whole(body.into()))
}

pub(crate) fn with_type<B>(status: StatusCode, kind: HeaderValue, body: B) -> Response<B> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// Adds `Retry-After`, if the request may succeed later.
pub(crate) fn add_retry<B>(answer: &mut Response<B>) {
    if matches!(
        answer.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
}

/// Adds the place in the spool of a request's rows.
pub(crate) fn add_place<B>(answer: &mut Response<B>, place: &SpoolPlace) {
    // Digits, hyphens and dots are always valid in a header.
    if let Ok(value) = HeaderValue::try_from(place.to_string()) {
        answer.headers_mut().insert(PLACE, value);
    }
}

/// Adds the header that says that a part of the request was executed before.
pub(crate) fn add_replayed<B>(answer: &mut Response<B>) {
    let yes = HeaderValue::from_static("true");
    answer.headers_mut().insert(REPLAYED, yes);
}
