//! The times at which units that delay others, and units that delay none, were last seen.

use std::time::Duration;

use tokio::time::Instant;

/// Two periods of the same length. Units that delay others travel apart for this long after others
/// were seen. Other flights leave room for a flight apart for this long after one has landed.
const LATELY: Duration = Duration::from_secs(1);

/// The flights of units that delay others.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// True if a unit that delays no others has arrived in this turn.
    pub(super) has_others: bool,
    /// The last time at which such units were seen.
    pub(super) others: Option<Instant>,
    /// The time at which a flight apart landed last.
    pub(super) landed: Option<Instant>,
    /// The earliest time for the next flight apart, if others have their turn first.
    pub(super) next: Option<Instant>,
}

impl Apart {
    fn is_lately(moment: Option<Instant>, now: Instant) -> bool {
        moment.is_some_and(|at| now.saturating_duration_since(at) < LATELY)
    }

    /// True if units that delay no others were seen lately.
    pub(super) fn has_others(&self, now: Instant) -> bool {
        Self::is_lately(self.others, now)
    }

    /// True if other flights should leave room for a flight apart.
    pub(super) fn is_expected(&self, now: Instant) -> bool {
        Self::is_lately(self.landed, now)
    }
}
