//! A database that cannot be reached: writes wait for it, but not for ever.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::Fault;

use super::Worker;
use crate::solo::{away_before, waited_in_vain};

/// Since when the database is away, as the lane's handle tells it.
#[derive(Clone, Debug)]
pub(crate) struct AwayNote {
    pub(crate) since: Instant,
    pub(crate) reason: Box<str>,
}

#[derive(Debug)]
pub(super) struct Away {
    since: Instant,
    fault: Fault,
    /// When to look for units that have waited long enough.
    look_at: Instant,
}

impl Worker {
    pub(super) fn connected(&mut self, pilot: u64) {
        let now = Instant::now();
        if self.fleet.connected_now(pilot, now) {
            self.meters.reconnects.inc();
        }
        self.look_for_idle(now);
        self.refused = None;
        if let Some(away) = self.away.take() {
            let away_for = away.since.elapsed();
            tracing::warn!(lane = %self.name, ?away_for, "the database is back");
            self.note_away();
        }
    }

    /// A pilot cannot reach the database and goes on trying.
    pub(super) fn unreachable(&mut self, pilot: u64, fault: Fault) {
        let now = Instant::now();
        if self.fleet.connected() > 0 {
            // Other connections work: there are to be no more of them for now.
            tracing::debug!(lane = %self.name, %fault, "no further connection");
            self.fleet.dismiss(pilot);
            self.fleet.pause(now);
            return;
        }
        match &mut self.away {
            Some(away) => away.fault = fault,
            None => {
                tracing::warn!(
                    lane = %self.name, %fault, away_wait = ?self.limits.away_wait,
                    "the database cannot be reached; writes wait, and Windrow goes on trying"
                );
                self.away = Some(Away {
                    since: now,
                    fault,
                    look_at: now + self.limits.away_wait,
                });
                self.note_away();
            }
        }
    }

    /// The database does not let Windrow in, and trying again will not help: whoever waits is told.
    pub(super) fn refused(&mut self, pilot: u64, fault: &Fault) {
        self.fleet.dismiss(pilot);
        if self.fleet.connected() > 0 {
            tracing::debug!(lane = %self.name, %fault, "no further connection");
            self.fleet.pause(Instant::now());
            return;
        }
        if self.refused.as_ref() != Some(&fault.message) {
            tracing::warn!(lane = %self.name, %fault, "the database refuses the connection");
            self.refused = Some(fault.message.clone());
        }
        if self.away.take().is_some() {
            self.note_away();
        }
        self.fail(None, fault);
    }

    /// The fault for writes that arrive while the database has been away for too long.
    pub(super) fn too_long_away(&self) -> Option<Fault> {
        let away = self.away.as_ref()?;
        let wait = self.limits.away_wait;
        let away_for = away.since.elapsed();
        (away_for >= wait).then(|| away_before(&away.fault, away_for, wait))
    }

    /// When units will have waited long enough for a database that is away.
    pub(super) fn away_ends_at(&self) -> Option<Instant> {
        let away = self.away.as_ref()?;
        (self.queue.totals().units > 0).then_some(away.look_at)
    }

    /// Fails the units that have waited long enough for a database that is away.
    pub(super) fn expire(&mut self) {
        let Some(away) = &self.away else { return };
        let (now, wait) = (Instant::now(), self.limits.away_wait);
        if now < away.look_at {
            return;
        }
        let fault = waited_in_vain(&away.fault, wait);
        let oldest = now
            .checked_sub(wait)
            .and_then(|latest| self.fail(Some(latest), &fault));
        // Each look costs time for all that waits, so there are not many of them.
        let step = (wait / 50).max(Duration::from_millis(10));
        let next = oldest.map_or(now + wait, |arrived| arrived + wait);
        if let Some(away) = &mut self.away {
            away.look_at = next.max(now + step);
        }
    }

    /// Fails all units that wait and arrived at `latest` or before; gives the arrival of the oldest
    /// that stays.
    pub(super) fn fail(&mut self, latest: Option<Instant>, fault: &Fault) -> Option<Instant> {
        let before = self.queue.totals().units;
        let oldest = self.queue.fail(latest, fault, &mut self.tickets);
        let failed = before - self.queue.totals().units;
        self.count.fault(fault.class, failed);
        oldest
    }

    fn note_away(&self) {
        self.meters.away.set(i64::from(self.away.is_some()));
        let note = self.away.as_ref().map(|away| AwayNote {
            since: away.since,
            reason: away.fault.message.clone(),
        });
        self.away_note.send_replace(note);
    }
}
