//! The refusal of a request, or of the rest of one.

use bytes::Bytes;
use http::header::{ALLOW, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use windrow_core::{Fault, FaultClass};

use crate::answers::answer::{self, Answer, AnswerBody};
use crate::answers::json::{self, ErrorPosition};

/// The reason, the status, and the position in the request's text.
#[derive(Clone, Debug)]
pub struct Refusal(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    status: StatusCode,
    fault: Fault,
    position: ErrorPosition,
    index: Option<u64>,
    allow: Option<&'static str>,
}

/// The code of an error of HTTP: SQLSTATE 08P01, protocol violation.
pub const PROTOCOL: &str = "08P01";

impl Refusal {
    /// Returns a refusal with this status.
    pub fn new(status: StatusCode, fault: Fault) -> Self {
        Self(Box::new(Parts {
            status,
            fault,
            position: ErrorPosition::default(),
            index: None,
            allow: None,
        }))
    }

    /// Returns the refusal of an error of HTTP.
    pub fn protocol(status: StatusCode, message: impl Into<Box<str>>) -> Self {
        Self::new(status, Fault::new(FaultClass::Invalid, PROTOCOL, message))
    }

    /// Returns the refusal of a feature that this version lacks.
    pub(crate) fn later(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_IMPLEMENTED,
            Fault::new(
                FaultClass::Unsupported,
                "0A000",
                format!("{what} is not available in this version of Windrow"),
            ),
        )
    }

    pub(crate) fn at(mut self, position: ErrorPosition) -> Self {
        self.0.position = position;
        self
    }

    pub(crate) fn index(mut self, index: u64) -> Self {
        self.0.index = Some(index);
        self
    }

    pub(crate) fn allow(mut self, methods: &'static str) -> Self {
        self.0.allow = Some(methods);
        self
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the error.
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// Appends `"error":{..}`.
    pub(crate) fn write_error(&self, out: &mut Vec<u8>) {
        json::error(out, &self.0.fault, self.0.position);
    }

    pub(crate) fn into_answer(self) -> Answer {
        self.into_whole().map(AnswerBody::Whole)
    }

    /// Returns the answer in the frontend's own form.
    pub fn into_whole(self) -> Response<Bytes> {
        let mut body = Vec::with_capacity(256);
        body.push(b'{');
        self.write_error(&mut body);
        if let Some(index) = self.0.index {
            json::field(&mut body, "index");
            json::number(&mut body, index);
        }
        body.push(b'}');
        let mut answer = answer::whole_json(self.0.status, body);
        self.add_headers(&mut answer);
        answer
    }

    /// Adds the headers of the refusal.
    pub fn add_headers<B>(&self, answer: &mut Response<B>) {
        answer::add_retry(answer);
        if let Some(methods) = self.0.allow {
            let methods = HeaderValue::from_static(methods);
            answer.headers_mut().insert(ALLOW, methods);
        }
        if self.0.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"windrow\"");
            answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::new(status_of(fault.class), fault)
    }
}

/// Returns the status for a fault.
pub(crate) fn status_of(class: FaultClass) -> StatusCode {
    match class {
        FaultClass::Invalid => StatusCode::BAD_REQUEST,
        FaultClass::Unique | FaultClass::ForeignKey => StatusCode::CONFLICT,
        FaultClass::Value | FaultClass::NotNull | FaultClass::Check | FaultClass::NoColumn => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        FaultClass::NoTable => StatusCode::NOT_FOUND,
        FaultClass::Denied => StatusCode::FORBIDDEN,
        FaultClass::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        FaultClass::Overloaded => StatusCode::TOO_MANY_REQUESTS,
        // A conflict that remains after the lane's own retries may be gone a moment later.
        FaultClass::Unavailable | FaultClass::Cancelled | FaultClass::Conflict => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        // The gateway got no answer from the database: 504 is the only status that leaves the
        // outcome open.
        FaultClass::Unknown => StatusCode::GATEWAY_TIMEOUT,
        FaultClass::Unsupported => StatusCode::NOT_IMPLEMENTED,
        FaultClass::Other => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
