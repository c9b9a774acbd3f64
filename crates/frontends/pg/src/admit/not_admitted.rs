//! Reasons why a client is not admitted.

use windrow_core::Fault;

/// The reason why a client is not admitted.
#[derive(Debug)]
pub(super) enum NotAdmitted {
    /// The connection is lost, was not a client's, or carried a cancel request: no error is sent.
    Silent,
    /// The client gets this error.
    Fatal(Fault),
}

impl From<Fault> for NotAdmitted {
    fn from(fault: Fault) -> Self {
        Self::Fatal(fault)
    }
}
