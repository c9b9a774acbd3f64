//! The error of an envelope or of one of its parts.

use http::StatusCode;

/// Why an envelope, or a request in it, cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// 400 for wrong syntax, 413 for too many parts, 415 for a body that is no envelope, 431 for a
    /// part whose head is too long.
    pub status: StatusCode,
    /// The message for the client.
    pub message: Box<str>,
}

impl Malformed {
    pub(crate) fn new(status: StatusCode, message: impl Into<Box<str>>) -> Self {
        let message = message.into();
        Self { status, message }
    }

    /// Returns an error with status 400.
    pub(crate) fn bad(message: impl Into<Box<str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}
