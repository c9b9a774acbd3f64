//! Reasons for which a client is not admitted.

use windrow_core::Fault;

/// The reason for which a client is not admitted.
#[derive(Debug)]
pub(super) enum NotAdmitted {
    /// The connection is gone, or was never a client's, or carried a cancel request.
    Silent,
    /// The client gets this error.
    Fatal(Fault),
}

impl From<Fault> for NotAdmitted {
    fn from(fault: Fault) -> Self {
        Self::Fatal(fault)
    }
}
