//! Outcomes of calls over PostgreSQL's protocol.

use std::fmt;

use crate::load_report::{LoadOutcome, LoadReport};

/// Latencies and outcomes of a load over PostgreSQL's protocol.
pub type Report = LoadReport<CallOutcome>;

/// The outcome of one call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallOutcome {
    /// The call succeeded.
    Success,
    /// The call failed with this SQLSTATE.
    Error([u8; 5]),
}

impl LoadOutcome for CallOutcome {
    fn is_success(self) -> bool {
        self == Self::Success
    }
}

impl fmt::Debug for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::Error(code) => f.write_str(&String::from_utf8_lossy(code)),
        }
    }
}
