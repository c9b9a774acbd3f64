//! The failure of a request to a broker.

use std::fmt;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use windrow_spool::SpoolFault;

/// The failure of a request to a broker.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// There was no connection: nothing was sent.
    Unsent(Arc<str>),
    /// Broker and client cannot connect, for a reason that will not pass: nothing was sent.
    Refused(Arc<str>),
    /// The connection was lost after the request was sent, or there was no answer in time.
    Lost(Arc<str>),
    /// The broker answered with this error.
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

    /// Returns the failure for the case that it happened before the request was sent.
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
            // A broker checks for these errors before it appends. It may report others, such as
            // that it is no longer the leader, after it has appended a batch that the replicas may
            // keep.
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
