//! Progress of preparing the statements that a simple query names.

use bytes::Bytes;

/// A preparation that was sent.
#[derive(Default)]
pub(super) struct Preparing {
    /// The body of the server's error.
    pub(super) error: Option<Bytes>,
}

/// The progress of the preparation that a simple query needs.
pub(super) enum Preparation {
    /// The query can be sent.
    Done,
    UnderWay,
    /// The server's error: the body of its ErrorResponse.
    Failed(Bytes),
}
