//! Limits of a lane that a user may set. The defaults need no change.

use std::time::Duration;

/// The limits of one lane. `None` means that pace finds the value, within the abilities of the
/// sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of rows in a batch. A unit is never split: a larger one is a batch alone.
    pub batch_rows: Option<usize>,
    /// The largest number of bytes of values in a batch. A larger unit is a batch alone.
    pub batch_bytes: usize,
    /// The largest number of flights at once, each on a connection of its own.
    pub flights: Option<usize>,
    /// The time for which a write may wait for others to join it, although a connection is free; 0
    /// for no waiting.
    pub max_wait: Duration,
    /// The time after which an idle connection is closed; [`Duration::MAX`] for never. A later
    /// batch opens a new one.
    pub idle_close: Duration,
    /// The time for which writes wait for an unreachable database before they fail as unavailable,
    /// and for one that another process has locked as a whole (an SQLite file).
    pub away_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_rows: None,
            batch_bytes: 4 << 20,
            flights: None,
            max_wait: Duration::ZERO,
            idle_close: Duration::from_secs(60),
            away_wait: Duration::from_secs(5),
        }
    }
}
