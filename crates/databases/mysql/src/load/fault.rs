//! Classifies failures for a portion.

use windrow_core::{Fault, FaultClass, LoadFault};

use crate::fault::{Scope, Trouble, unavailable};

/// Classifies a failure before the commit.
pub(super) fn of_trouble(trouble: Trouble) -> LoadFault {
    match trouble {
        Trouble::Lost(why) => LoadFault::Again(unavailable(&why)),
        Trouble::Refused(refusal) => match (refusal.scope, refusal.fault.class) {
            (Scope::Lock | Scope::Transaction | Scope::Connection, _) => {
                LoadFault::Again(refusal.fault)
            }
            (_, FaultClass::NoTable | FaultClass::NoColumn | FaultClass::Denied) => {
                LoadFault::Hopeless(refusal.fault)
            }
            _ => LoadFault::Refused(refusal.fault),
        },
    }
}

/// Classifies a failure to write a mark, which is no fault of the rows.
pub(super) fn of_mark(trouble: Trouble) -> LoadFault {
    match of_trouble(trouble) {
        LoadFault::Refused(fault) => LoadFault::Hopeless(fault),
        other => other,
    }
}

/// Returns the fault of a server that counts other rows than it was sent.
pub(super) fn miscounted(sent: u64, written: u64) -> Fault {
    let message = format!("of {sent} rows LOAD DATA wrote {written}");
    Fault::new(FaultClass::Other, "XX000", message)
}
