//! When units travelled apart from others, because their sources' units fail again and again.

use std::time::Duration;

use tokio::time::Instant;

/// For so long after an outcome of a source that does not fail, those that fail travel apart; and
/// for so long after a flight of theirs, others are ready for the next one.
const LATELY: Duration = Duration::from_secs(1);

/// What is known of the flights of sources that fail.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// An outcome of a source that does not fail was reported in this turn.
    pub(super) has_others: bool,
    /// When such an outcome was reported last.
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

    /// True while sources that do not fail have outcomes.
    pub(super) fn has_others(&self, now: Instant) -> bool {
        Self::is_lately(self.others, now)
    }

    /// True while a flight of others had better leave room for one apart.
    pub(super) fn is_expected(&self, now: Instant) -> bool {
        Self::is_lately(self.landed, now)
    }
}
