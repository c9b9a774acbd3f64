//! The failure of a request to a broker.

use std::fmt;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use windrow_spool::SpoolFault;

/// The failure of a request to a broker.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// No connection was there: nothing was sent.
    Unsent(Arc<str>),
    /// Broker and client do not let each other in: nothing was sent, nor will be in a moment.
    Refused(Arc<str>),
    /// The connection was lost behind the request, or nobody answered in time.
    Lost(Arc<str>),
    /// The broker said so.
    Said(ResponseError),
}

impl Failure {
    pub(crate) fn unsent(what: impl Into<String>) -> Self {
        Self::Unsent(what.into().into())
    }

    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused(what.into().into())
    }

    pub(crate) fn lost(what: impl Into<String>) -> Self {
        Self::Lost(what.into().into())
    }

    /// The same, where it happened before the request itself was sent.
    pub(crate) fn before_sending(self) -> Self {
        match self {
            Self::Refused(_) => self,
            other => Self::unsent(other.to_string()),
        }
    }

    /// Returns the failure for an error code; `Ok` for 0.
    pub(crate) fn check(code: i16) -> Result<(), Self> {
        match ResponseError::try_from_code(code) {
            None => Ok(()),
            Some(said) => Err(Self::Said(said)),
        }
    }

    /// Returns true if the request certainly had no effect.
    pub(crate) fn did_nothing(&self) -> bool {
        match self {
            Self::Unsent(_) | Self::Refused(_) => true,
            Self::Lost(_) => false,
            // What a broker checks before it appends. Others it may also say of a batch that it
            // has appended, and that the replicas may still keep: that it leads no more, say.
            Self::Said(said) => matches!(
                said,
                ResponseError::ClusterAuthorizationFailed
                    | ResponseError::CorruptMessage
                    | ResponseError::InvalidProducerEpoch
                    | ResponseError::InvalidProducerIdMapping
                    | ResponseError::InvalidRecord
                    | ResponseError::MessageTooLarge
                    | ResponseError::NotEnoughReplicas
                    | ResponseError::OutOfOrderSequenceNumber
                    | ResponseError::PolicyViolation
                    | ResponseError::RecordListTooLarge
                    | ResponseError::TopicAuthorizationFailed
                    | ResponseError::UnknownProducerId
                    | ResponseError::UnsupportedVersion
            ),
        }
    }

    /// Returns true if the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unsent(_) | Self::Lost(_) => true,
            Self::Refused(_) => false,
            Self::Said(said) => {
                said.is_retriable() || matches!(said, ResponseError::UnknownServerError)
            }
        }
    }

    /// Returns the failure as a fault of the spool, for a request without effect.
    pub(crate) fn fault(&self, doing: &str) -> SpoolFault {
        SpoolFault::Unreached {
            why: format!("{doing}: {self}").into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent(why) | Self::Refused(why) | Self::Lost(why) => f.write_str(why),
            Self::Said(said) => write!(f, "the broker says {said} (code {})", said.code()),
        }
    }
}
