//! What a failure means for the writes of its request.

use windrow_core::{Fault, FaultClass};

/// What a failure says of the writes of its request.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// Refused before anything was written.
    Refused {
        /// What its clients are told.
        fault: Fault,
        /// It is the request that is refused, whatever its writes are.
        request: bool,
    },
    /// Others were in the way of the write; it may be run again.
    Conflict(Fault),
    /// The database cannot take writes now: a single write was certainly not executed. Of many,
    /// other shards may have taken theirs, where the database has them.
    Away(Fault),
    /// It cannot be told what was written.
    Unsure(Fault),
}

impl Meaning {
    /// `request`: the fault concerns the request rather than one of its writes.
    pub fn of(fault: Fault, request: bool) -> Self {
        match fault.class {
            FaultClass::Conflict => Self::Conflict(fault),
            FaultClass::Unavailable if !request => Self::Away(fault),
            FaultClass::Unknown => Self::Unsure(fault),
            _ => Self::Refused { fault, request },
        }
    }

    /// The fault itself.
    pub fn into_fault(self) -> Fault {
        match self {
            Self::Refused { fault, .. }
            | Self::Conflict(fault)
            | Self::Away(fault)
            | Self::Unsure(fault) => fault,
        }
    }
}

/// Something else has answered: a proxy, or the server's HTTP layer. Class, SQLSTATE, and whether
/// it concerns the request rather than one of its writes.
pub fn of_status(status: u16) -> (FaultClass, &'static str, bool) {
    match status {
        401 => (FaultClass::Denied, "28000", true),
        403 => (FaultClass::Denied, "42501", true),
        // Whoever stands between has given up waiting; the database may not have.
        408 => (FaultClass::Unknown, "08007", false),
        413 => (FaultClass::TooLarge, "54000", false),
        429 | 503 => (FaultClass::Unavailable, "08001", false),
        400..=499 => (FaultClass::Invalid, "08P01", true),
        _ => (FaultClass::Unknown, "08007", false),
    }
}
