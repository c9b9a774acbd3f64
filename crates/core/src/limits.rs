//! What a user may trade. By default nothing needs setting.

use std::time::Duration;

/// The knobs of one lane. `None` means: found at run time, within what the sink can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most rows in one batch. A unit is never cut: a larger one travels alone.
    pub batch_rows: Option<usize>,
    /// The most bytes of values in one batch. A larger unit travels alone.
    pub batch_bytes: usize,
    /// The most flights (connections that write) at once.
    pub flights: Option<usize>,
    /// How long a write may be held back for others to join it, although a flight is free. 0:
    /// never.
    pub max_wait: Duration,
    /// How long a connection is kept that no batch needs; the next batch that finds none opens
    /// one. [`Duration::MAX`]: for ever.
    pub idle_close: Duration,
    /// Time that writes wait for a database that cannot be reached before they fail as unavailable,
    /// and for one that another process holds as a whole (a file of SQLite).
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
