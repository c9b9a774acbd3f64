//! A database that cannot be reached: writes wait for it, but not for ever.

use tokio::time::Instant;
use windrow_core::{Fault, RetryPolicy, Work};

use super::state::Worker;
use crate::away::Away;

impl<W: Work> Worker<W> {
    pub(super) fn connected(&mut self, connection: u64) {
        let now = Instant::now();
        if self.connections.connected_now(connection, now) {
            self.meters.reconnects.inc();
        }
        self.look_for_idle(now);
        self.refused = None;
        self.back();
    }

    fn back(&mut self) {
        if let Some(away) = self.away.take() {
            let away_for = away.since.elapsed();
            tracing::warn!(lane = %self.name, ?away_for, "the database is back");
            self.note_away();
        }
    }

    /// Notes if the database gave a sign of life (`None`) or a fault. A lane that has something to
    /// do finds out of a fault by itself; of a sign of life it learns that writes may come again.
    pub(super) fn probed(&mut self, fault: Option<Box<Fault>>) {
        match (fault, self.tickets.is_empty()) {
            (None, true) => self.back(),
            (None, false) => {
                if let Some(away) = &mut self.away {
                    away.is_only_probed = true;
                    self.note_away();
                }
            }
            (Some(fault), true) => self.gone(*fault, true),
            (Some(_), false) => {}
        }
    }

    /// A connection's task cannot reach the database and goes on trying.
    pub(super) fn unreachable(&mut self, connection: u64, fault: Fault) {
        if self.connections.connected() > 0 {
            // Other connections work: there are to be no more of them for now.
            tracing::debug!(lane = %self.name, %fault, "no further connection");
            self.connections.dismiss(connection);
            self.connections.pause(Instant::now());
            return;
        }
        self.gone(fault, false);
    }

    fn gone(&mut self, fault: Fault, is_only_probed: bool) {
        let now = Instant::now();
        match &mut self.away {
            Some(away) => {
                away.fault = fault;
                away.is_only_probed &= is_only_probed;
                self.note_away();
            }
            None => {
                tracing::warn!(
                    lane = %self.name, %fault, away_wait = ?self.limits.away_wait,
                    "the database cannot be reached; writes wait, and Windrow goes on trying"
                );
                self.away = Some(Away {
                    since: now,
                    fault,
                    look_at: now + self.limits.away_wait,
                    is_only_probed,
                });
                self.note_away();
            }
        }
    }

    /// Acts on a database that refuses the connection for a reason that another attempt does not
    /// mend: all that wait are answered.
    pub(super) fn refused(&mut self, connection: u64, fault: &Fault) {
        self.connections.dismiss(connection);
        if self.connections.connected() > 0 {
            tracing::debug!(lane = %self.name, %fault, "no further connection");
            self.connections.pause(Instant::now());
            return;
        }
        if self.refused.as_ref() != Some(&fault.message) {
            tracing::warn!(lane = %self.name, %fault, "the database refuses the connection");
            self.refused = Some(fault.message.clone());
        }
        if self.away.take().is_some() {
            self.note_away();
        }
        self.fail(fault, |_, _, _| false);
    }

    /// The fault for writes that arrive while the database has been away for too long.
    pub(super) fn too_long_away(&self, policy: RetryPolicy) -> Option<Fault> {
        let wait = policy.away_wait(self.limits.away_wait);
        self.away.as_ref()?.refusal(wait)
    }

    fn note_away(&self) {
        self.meters.away.set(i64::from(self.away.is_some()));
        self.away_note.send_replace(self.away.clone());
    }
}
