//! What the tasks of a lane tell its worker, through one bounded channel.

use tokio::sync::mpsc;
use windrow_core::{Fault, Report, Unit, UnitOutcome};

use crate::solo::SoloOrder;

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
    /// A unit that ran alone has its outcome.
    Alone { solo: u64, outcome: UnitOutcome },
    /// There was no room for a connection of its own.
    NoRoom { solo: u64, order: SoloOrder },
}

/// What a flight brings back.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) units: Vec<Unit>,
    pub(crate) report: Report,
}

pub(crate) type Signals = mpsc::Sender<Signal>;
