//! A request that came in an envelope, and who answers it.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use windrow_core::Trace;

use crate::answers::{Answer, Refusal};
use crate::connection_state::ConnectionState;
use crate::handover::Handover;
use crate::rights::Rights;
use crate::source::WriteSource;

/// A request that came in an envelope.
pub(crate) struct Part<'a> {
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
    pub(crate) source: &'a WriteSource,
    pub(crate) handover: &'a Handover,
    pub(crate) connection: &'a ConnectionState,
    /// The envelope's: what becomes of its parts is noted there.
    pub(crate) trace: Option<&'a Trace>,
    /// The rights of the envelope's token.
    pub(crate) rights: Option<Arc<Rights>>,
}

/// Answers the parts of an envelope as requests of their own.
pub(crate) trait PartAnswerer: Sync {
    /// Answers one part, whose envelope has shown the token.
    fn answer(&self, part: Part<'_>) -> impl Future<Output = Answer> + Send;

    /// Returns the answer to a part that could not be read, in the form that the clients of the
    /// envelope's path know.
    fn refuse(&self, envelope: &Parts, refusal: Refusal) -> Answer;
}
