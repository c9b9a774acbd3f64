//! What is wrong with an envelope or a part of it.

use http::StatusCode;

/// An envelope, or a request in it, that cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// 400 for one that makes no sense, 413 for one with too many parts, 415 for another kind of
    /// body, 431 for a part whose head is too long.
    pub status: StatusCode,
    /// What is wrong, for the client.
    pub message: Box<str>,
}

impl Malformed {
    pub(crate) fn new(status: StatusCode, message: impl Into<Box<str>>) -> Self {
        let message = message.into();
        Self { status, message }
    }

    /// 400
    pub(crate) fn bad(message: impl Into<Box<str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}
