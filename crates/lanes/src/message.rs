//! What the tasks of a lane tell its worker, through one bounded channel.

use tokio::sync::mpsc;
use windrow_core::{Fault, Report, Unit, UnitOutcome};

/// A lane's worker reads these before anything else.
#[derive(Debug)]
pub(crate) enum Signal {
    /// A pilot has its connection.
    Connected { pilot: u64 },
    /// The database cannot be reached; the pilot goes on trying.
    Unreachable { pilot: u64, fault: Fault },
    /// The database does not let the pilot in; its task has ended.
    Refused { pilot: u64, fault: Fault },
    /// A flight has ended. The units come back where some of them are to run again.
    Landed { pilot: u64, landed: Landed },
    /// Units that ran alone have their outcomes.
    Alone {
        flight: u64,
        outcomes: Vec<UnitOutcome>,
    },
}

/// What a flight brings back.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) units: Vec<Unit>,
    pub(crate) report: Report,
}

pub(crate) type Signals = mpsc::Sender<Signal>;
