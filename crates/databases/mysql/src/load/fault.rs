//! Classifies failures for a portion.

use windrow_core::{Fault, FaultClass, LoadFault};

use crate::fault::{Scope, Trouble, unavailable};

/// A failure before the commit.
impl From<Trouble> for LoadFault {
    fn from(trouble: Trouble) -> Self {
        let refusal = match trouble {
            Trouble::Lost(why) => return Self::Again(unavailable(&why)),
            Trouble::Refused(refusal) => refusal,
        };
        match (refusal.scope, refusal.fault.class) {
            (Scope::Lock | Scope::Transaction | Scope::Connection, _) => Self::Again(refusal.fault),
            (_, FaultClass::NoTable | FaultClass::NoColumn | FaultClass::Denied) => {
                Self::Hopeless(refusal.fault)
            }
            _ => Self::Refused(refusal.fault),
        }
    }
}

/// Classifies a failure to write a mark, which is no fault of the rows.
pub(super) fn of_mark(trouble: Trouble) -> LoadFault {
    match trouble.into() {
        LoadFault::Refused(fault) => LoadFault::Hopeless(fault),
        other => other,
    }
}

/// Returns the fault of a server that counts other rows than it was sent.
pub(super) fn miscounted(sent: u64, written: u64) -> Fault {
    let message = format!("of {sent} rows LOAD DATA wrote {written}");
    Fault::new(FaultClass::Other, "XX000", message)
}
