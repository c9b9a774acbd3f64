//! The error of a request: its fault, and the writes that it concerns.

use windrow_core::{Fault, FaultClass};

/// An error that the server answered.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The fault for the clients of the writes.
    pub fault: Fault,
    /// The writes that the error concerns.
    pub scope: Scope,
}

/// The writes that an error concerns. [`Fault::retry`] says how they may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One write of the request, or a conflict with one. Nothing of the request was written.
    Write,
    /// The request, whatever its writes are. Nothing of it was written.
    Request,
    /// The database, which accepts no writes at present. A request for one write was not executed.
    /// Of a request for several, other shards may have executed theirs.
    Database,
    /// The request, of which an unknown part was written.
    Unknown,
}

impl Refusal {
    /// Returns the error of a fault. `is_request`: the fault concerns the request, and not one of
    /// its writes.
    pub fn new(fault: Fault, is_request: bool) -> Self {
        let scope = match fault.class {
            FaultClass::Conflict => Scope::Write,
            FaultClass::Unavailable if !is_request => Scope::Database,
            FaultClass::Unknown => Scope::Unknown,
            _ if is_request => Scope::Request,
            _ => Scope::Write,
        };
        Self { fault, scope }
    }
}

/// Classifies an HTTP status of a proxy or of the server's HTTP layer. Returns class, SQLSTATE, and
/// true if the error concerns the request and not one of its writes.
pub fn of_status(status: u16) -> (FaultClass, &'static str, bool) {
    match status {
        401 => (FaultClass::Denied, "28000", true),
        403 => (FaultClass::Denied, "42501", true),
        // A proxy stopped waiting. The database may still execute the request.
        408 => (FaultClass::Unknown, "08007", false),
        413 => (FaultClass::TooLarge, "54000", false),
        429 | 503 => (FaultClass::Unavailable, "08001", false),
        400..=499 => (FaultClass::Invalid, "08P01", true),
        _ => (FaultClass::Unknown, "08007", false),
    }
}
