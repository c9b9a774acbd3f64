//! Errors of writes that were not executed and can be sent again.

use windrow_core::{Fault, FaultClass};

/// The error of a write whose lane has ended at this moment.
pub(super) fn lane_ended() -> Fault {
    let text = "the lane of this session has just ended; nothing was executed, try again";
    Fault::new(FaultClass::Unavailable, "57P03", text)
}

/// The error of a write for which there is no memory at this moment.
pub(super) fn no_memory() -> Fault {
    let text = "the write does not fit the memory budget at this moment (limits.memory); nothing was executed, try again";
    Fault::new(FaultClass::Overloaded, "53200", text)
}
