//! Units that wait for too long: for longer than their clients allow their statements to take, or
//! for longer than the lane waits for a database that is away.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::{Fault, Work};

use super::state::Worker;
use crate::away::waited_in_vain;
use crate::ticket::Tickets;

/// Each look costs time for all that waits, so there are not many of them.
const STEP: Duration = Duration::from_millis(10);

impl<W: Work> Worker<W> {
    /// When units may have waited for too long.
    pub(super) fn late_at(&self) -> Option<Instant> {
        let limit = self.sink.statement_timeout()?;
        let at = self.late.oldest?.checked_add(limit)?;
        Some(self.late.looked.map_or(at, |looked| at.max(looked + STEP)))
    }

    /// Answers the units that have waited for too long. They have not left, so it is certain that
    /// nothing was written.
    pub(super) fn answer_late(&mut self) {
        if self.queue.units() == 0 && !self.lock_waits.is_waiting() {
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
        let queued = self.fail(&fault, |_, _, arrived| arrived > latest);
        let alone = self.expire_lock_waits(latest, &fault);
        self.late.oldest = [queued, alone].into_iter().flatten().min();
        self.late.looked = Some(now);
    }

    /// When units will have waited long enough for a database that is away.
    pub(super) fn away_ends_at(&self) -> Option<Instant> {
        let away = self.away.as_ref()?;
        (self.queue.units() > 0).then_some(away.look_at)
    }

    /// Fails the units that have waited long enough for a database that is away.
    pub(super) fn expire(&mut self) {
        let Some(away) = &self.away else { return };
        let (now, wait) = (Instant::now(), self.limits.away_wait);
        if now < away.look_at {
            return;
        }
        let fault = waited_in_vain(&away.fault, wait);
        // What is in the background keeps nobody from ending the lane.
        let is_patient = self.open;
        let oldest = self.fail(&fault, |tickets, ticket, arrived| {
            let wait = match is_patient {
                true => tickets.away_wait(ticket, wait),
                false => wait,
            };
            now.saturating_duration_since(arrived) < wait
        });
        // Each look costs time for all that waits, so there are not many of them.
        let step = (wait / 50).max(Duration::from_millis(10));
        let next = oldest.map_or(now + wait, |arrived| arrived + wait);
        if let Some(away) = &mut self.away {
            away.look_at = next.max(now + step);
        }
    }

    /// Fails all units that wait but those that `stays` says of, by their ticket and arrival.
    /// Returns the arrival of the oldest one that stays.
    pub(super) fn fail(
        &mut self,
        fault: &Fault,
        stays: impl Fn(&Tickets<W::Done>, usize, Instant) -> bool,
    ) -> Option<Instant> {
        let before = self.queue.units();
        let oldest = self.queue.fail(fault, &mut self.tickets, stays);
        let failed = before - self.queue.units();
        self.count.fault(fault.class, failed);
        oldest
    }
}
