//! The state of a lane at this moment.

use std::time::Duration;

use crate::name::Name;

/// The state of a lane at one moment. Its fields are read one after another, so a batch may land
/// between two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneStatus {
    /// The lane's name.
    pub name: Name,
    /// The database's name, as its makers write it.
    pub database: &'static str,
    /// Units that wait to leave.
    pub queued_units: u64,
    /// Rows of these units.
    pub queued_rows: u64,
    /// Bytes of these units.
    pub queued_bytes: u64,
    /// The time for which the lane has been idle, with all accepted writes answered; `None` while
    /// it has something to do. A write that is being submitted may not be counted yet, but a lane
    /// whose last intake is dropped answers it before it ends.
    pub idle: Option<Duration>,
    /// Connections for flights.
    pub connections: u64,
    /// Batches under way.
    pub flights: u64,
    /// The current limit of flights at once, found by pace.
    pub flights_limit: u64,
    /// The current limit of rows in one batch, found by pace.
    pub batch_rows_limit: u64,
    /// Rows of the batch that landed last; 0 before the first.
    pub last_batch_rows: u64,
    /// The time for which the database has been away, and the reason; `None` while it can be
    /// reached, or while no write has needed it.
    pub away: Option<(Duration, Box<str>)>,
    /// Writes accepted since the lane's metrics were created.
    pub writes: u64,
    /// Units answered with success.
    pub succeeded: u64,
    /// Units answered with a fault.
    pub failed: u64,
    /// Batches that landed.
    pub batches: u64,
    /// Units that were run again.
    pub retried: u64,
    /// Units that were run on a connection of their own.
    pub alone: u64,
    /// Units taken out because their client had left.
    pub abandoned: u64,
    /// Connections opened in place of lost ones.
    pub reconnects: u64,
}

/// Counts of several lanes since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Writes accepted.
    pub writes: u64,
    /// Batches that landed.
    pub batches: u64,
}
