//! What is told.

pub(crate) mod json;
pub(crate) mod ledger;
pub(crate) mod refusal;
mod report;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::envelope::Parcel;
use crate::server::link::Answering;

pub(crate) use refusal::Refusal;
pub(crate) use report::Report;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer with its body.
pub(crate) type Answer = Response<AnswerBody>;

/// A body that is there, or one that is written while it is sent.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    Whole(Bytes),
    Report(Box<Report>),
    Parcel(Box<Parcel>),
}

impl AnswerBody {
    /// Keeps this as long as there is something to write; gives it back where all of the body is
    /// there.
    pub(crate) fn keep(&mut self, answering: impl FnOnce() -> Answering) -> bool {
        match self {
            Self::Whole(_) => return false,
            Self::Report(report) => report.keep(answering()),
            Self::Parcel(parcel) => parcel.keep(answering()),
        }
        true
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => None,
            Self::Whole(bytes) => Some(std::mem::take(bytes)),
            Self::Report(report) => report.next_chunk(),
            Self::Parcel(parcel) => parcel.next_chunk(),
        };
        Poll::Ready(chunk.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Report(_) => SizeHint::default(),
            Self::Parcel(parcel) => parcel
                .length()
                .map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

/// An answer of JSON.
pub(crate) fn of_json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    with_type(status, JSON, AnswerBody::Whole(body.into()))
}

/// The results of many rows, written while they are sent.
pub(crate) fn report(status: StatusCode, report: Report) -> Answer {
    with_type(status, JSON, AnswerBody::Report(Box::new(report)))
}

/// An answer of some other kind.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let kind = HeaderValue::from_static(kind);
    with_type(status, kind, AnswerBody::Whole(body.into()))
}

pub(crate) fn with_type(status: StatusCode, kind: HeaderValue, body: AnswerBody) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// Asks the client to come back, where its request may succeed later.
pub(crate) fn add_retry(answer: &mut Answer) {
    if matches!(
        answer.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
}
