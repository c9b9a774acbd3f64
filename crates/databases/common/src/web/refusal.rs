//! The error of a request: its fault, and how far it reaches.

use windrow_core::{Fault, FaultClass};

/// An error that the server answered with.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The fault for the clients of the writes.
    pub fault: Fault,
    /// The writes that the error is about.
    pub scope: Scope,
}

/// The reach of an error. How they may be tried again, the fault says
/// ([`Fault::retry`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One write of the request, or a conflict of one. Nothing of the request was written.
    Write,
    /// The request, with any writes. Nothing of it was written.
    Request,
    /// The database, which accepts no writes now. A request for one write was not executed. Of a
    /// request for several, other shards may have executed theirs.
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

/// Classifies an HTTP status that a proxy or the server's HTTP layer answered with: class,
/// SQLSTATE, and true if it concerns the request and not one of its writes.
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
