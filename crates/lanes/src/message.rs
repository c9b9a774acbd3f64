//! The messages between a lane's worker and its tasks.

use tokio::sync::mpsc;
use tokio::time::Instant;
use windrow_core::{Fault, Report, RetryPolicy, Unit, UnitOutcome};

/// A batch to be executed.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) flight: u64,
    pub(crate) units: Vec<Unit>,
}

/// A unit that waits for a lock, to be executed alone.
#[derive(Debug)]
pub(crate) struct LockWaitOrder {
    /// A number that no other order of the lane has.
    pub(crate) number: u64,
    pub(crate) unit: Unit,
    pub(crate) arrived: Instant,
    pub(crate) policy: RetryPolicy,
    /// True while other connections for such units are open: if the server has no capacity for this
    /// one, the unit waits for one of them.
    pub(crate) others_connected: bool,
}

/// The messages of the tasks, through one bounded channel. A lane's worker reads them before all
/// others.
#[derive(Debug)]
pub(crate) enum Signal {
    /// A connection is open.
    Connected { connection: u64 },
    /// The database cannot be reached; the connection's task goes on trying.
    Unreachable { connection: u64, fault: Fault },
    /// The database refuses the login; the connection's task has ended.
    Refused { connection: u64, fault: Fault },
    /// A flight has ended. Its units come back if some of them are to run again.
    Landed {
        connection: u64,
        landed: LandedBatch,
    },
    /// A unit that waited for a lock has its outcome.
    LockWaitEnded {
        connection: u64,
        outcome: UnitOutcome,
    },
    /// The server had no capacity for a connection for the unit.
    NoRoom {
        connection: u64,
        order: LockWaitOrder,
    },
}

/// The report on a flight that has ended.
#[derive(Debug)]
pub(crate) struct LandedBatch {
    pub(crate) units: Vec<Unit>,
    pub(crate) report: Report,
    /// The number of units that failed only because they were executed before.
    pub(crate) replayed: u64,
}

pub(crate) type Signals = mpsc::Sender<Signal>;
