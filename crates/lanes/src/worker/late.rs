//! The ages of the units that wait.

use tokio::time::Instant;

/// The ages of the units that wait.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// None of them arrived before this.
    pub(super) oldest: Option<Instant>,
    /// When it was last looked for those that have waited for too long.
    pub(super) looked: Option<Instant>,
}

impl Late {
    /// A unit waits that arrived then.
    pub(super) fn waits(&mut self, arrived: Instant) {
        if self.oldest.is_none_or(|oldest| arrived < oldest) {
            self.oldest = Some(arrived);
        }
    }
}
