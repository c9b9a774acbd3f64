//! When units travelled apart from others, and when there were others.

use std::time::Duration;

use tokio::time::Instant;

/// Units that delay others travel apart for so long after others were seen; and for so long after
/// such a flight, others leave room for the next one.
const LATELY: Duration = Duration::from_secs(1);

/// The flights of units that delay others.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// True if a unit that delays no others has arrived in this turn.
    pub(super) has_others: bool,
    /// When such units were seen last.
    pub(super) others: Option<Instant>,
    /// When a flight apart landed last.
    pub(super) landed: Option<Instant>,
    /// When the next one may leave, where others have their turn first.
    pub(super) next: Option<Instant>,
}

impl Apart {
    fn is_lately(moment: Option<Instant>, now: Instant) -> bool {
        moment.is_some_and(|at| now.saturating_duration_since(at) < LATELY)
    }

    /// True while there are units that delay no others.
    pub(super) fn has_others(&self, now: Instant) -> bool {
        Self::is_lately(self.others, now)
    }

    /// True while a flight of others had better leave room for one apart.
    pub(super) fn is_expected(&self, now: Instant) -> bool {
        Self::is_lately(self.landed, now)
    }
}
