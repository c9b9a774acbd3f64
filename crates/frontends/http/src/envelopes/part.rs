//! A request in an envelope, and the port that answers it.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use windrow_core::Trace;

use crate::answers::{Answer, Refusal};
use crate::connection_state::ConnectionState;
use crate::handover::Handover;
use crate::rights::Rights;
use crate::source::WriteSource;

/// A request in an envelope.
pub(crate) struct Part<'a> {
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
    pub(crate) source: &'a WriteSource,
    pub(crate) handover: &'a Handover,
    pub(crate) connection: &'a ConnectionState,
    /// The envelope's trace, which also notes its parts.
    pub(crate) trace: Option<&'a Trace>,
    /// The rights of the envelope's token.
    pub(crate) rights: Option<Arc<Rights>>,
}

/// Answers the parts of an envelope as requests of their own.
pub(crate) trait PartAnswerer: Sync {
    /// Answers one part, whose envelope has shown the token.
    fn answer(&self, part: Part<'_>) -> impl Future<Output = Answer> + Send;

    /// Returns the answer to a part that could not be read, in the format of the envelope's path.
    fn refuse(&self, envelope: &Parts, refusal: Refusal) -> Answer;
}
