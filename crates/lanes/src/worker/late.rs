//! Units that have waited for longer than their clients allow their statements to take, without
//! having left.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::Fault;

use super::Worker;

/// Each look costs time for all that waits, so there are not many of them.
const STEP: Duration = Duration::from_millis(10);

/// What is known of the ages of those that wait.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// None of them arrived before this.
    oldest: Option<Instant>,
    looked: Option<Instant>,
}

impl Late {
    /// A unit waits that arrived then.
    pub(super) fn waits(&mut self, arrived: Instant) {
        if self.oldest.is_none_or(|oldest| arrived < oldest) {
            self.oldest = Some(arrived);
        }
    }
}

impl Worker {
    /// When units may have waited for too long.
    pub(super) fn late_at(&self) -> Option<Instant> {
        let limit = self.sink.statement_timeout()?;
        let at = self.late.oldest?.checked_add(limit)?;
        Some(self.late.looked.map_or(at, |looked| at.max(looked + STEP)))
    }

    /// Answers the units that have waited for too long. They have not left, so it is certain that
    /// nothing was written.
    pub(super) fn answer_late(&mut self) {
        if self.queue.totals().units == 0 && !self.alone.is_waiting() {
            self.late.oldest = None;
            return;
        }
        let (Some(at), Some(limit)) = (self.late_at(), self.sink.statement_timeout()) else {
            return;
        };
        let now = Instant::now();
        let Some(latest) = now.checked_sub(limit).filter(|_| now >= at) else {
            return;
        };
        let fault = Fault::late();
        let queued = self.fail(Some(latest), &fault);
        let alone = self.expire_alone(latest, &fault);
        self.late.oldest = [queued, alone].into_iter().flatten().min();
        self.late.looked = Some(now);
    }
}
