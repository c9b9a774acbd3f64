//! The reason why a request with a key is not executed.

use windrow_core::{Fault, FaultClass};

/// The reason why a request with a key is not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another request with the same key has not ended.
    UnderWay(Fault),
    /// The key was used for another request.
    Mismatch(Fault),
    /// The lane or the spool refuses the request, or the table of keys cannot be used.
    Failed(Fault),
}

impl Refused {
    /// Returns the fault for the client.
    pub fn fault(&self) -> &Fault {
        match self {
            Self::UnderWay(fault) | Self::Mismatch(fault) | Self::Failed(fault) => fault,
        }
    }

    pub(crate) fn under_way() -> Self {
        Self::UnderWay(Fault::new(
            FaultClass::Conflict,
            "55000",
            "a request with the same idempotency key has not been answered yet; send this one again once it has",
        ))
    }

    pub(crate) fn mismatch() -> Self {
        Self::Mismatch(Fault::invalid(
            "the idempotency key was used for another request before; a new request needs a new key, and a repeated one must be the same to the last value",
        ))
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}
