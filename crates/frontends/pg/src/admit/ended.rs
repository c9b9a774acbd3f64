//! Why somebody does not come in.

use windrow_core::Fault;

/// Why somebody does not come in.
#[derive(Debug)]
pub(super) enum Ended {
    /// It has gone, or never was a client; or it came only to interrupt somebody.
    Silent,
    /// It is told why.
    Fatal(Fault),
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Self::Fatal(fault)
    }
}
