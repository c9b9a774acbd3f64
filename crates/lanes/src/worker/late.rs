//! Units that wait longer than their client's statement timeout.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::Fault;

use super::ledger::Ledger;
use super::lock_waits::LockWaits;

/// The shortest time between two checks: each looks at all units that wait.
const STEP: Duration = Duration::from_millis(10);

/// The ages of the units that wait.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// A time before which none of the units arrived.
    oldest: Option<Instant>,
    /// The last check for units that have waited too long.
    looked: Option<Instant>,
}

impl Late {
    /// Notes that a unit waits, and when it arrived.
    pub(super) fn waits(&mut self, arrived: Instant) {
        if self.oldest.is_none_or(|oldest| arrived < oldest) {
            self.oldest = Some(arrived);
        }
    }

    /// Returns the time at which the first unit may have waited longer than the statement timeout.
    pub(super) fn at(&self, timeout: Option<Duration>) -> Option<Instant> {
        let at = self.oldest?.checked_add(timeout?)?;
        Some(self.looked.map_or(at, |looked| at.max(looked + STEP)))
    }

    /// Answers the units that have waited too long. They have not left, so certainly nothing was
    /// written.
    pub(super) fn answer(
        &mut self,
        timeout: Option<Duration>,
        ledger: &mut Ledger,
        lock_waits: &mut LockWaits,
    ) {
        if ledger.queue.units() == 0 && !lock_waits.is_waiting() {
            self.oldest = None;
            return;
        }
        let (Some(at), Some(limit)) = (self.at(timeout), timeout) else {
            return;
        };
        let now = Instant::now();
        let Some(latest) = now.checked_sub(limit).filter(|_| now >= at) else {
            return;
        };
        let fault = Fault::late();
        let queued = ledger.fail_queued(&fault, |tickets, ticket, arrived| {
            arrived > latest || tickets.policy(ticket).is_persistent()
        });
        let alone = lock_waits.expire(latest, &fault, ledger);
        self.oldest = [queued, alone].into_iter().flatten().min();
        self.looked = Some(now);
    }
}
