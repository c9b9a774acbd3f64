//! Writes to a database that cannot be reached: they wait, for a limited time.

use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;
use tokio::time::Instant;
use windrow_core::{Fault, Name, RetryPolicy};

use super::ledger::Ledger;
use crate::away::{Away, waited_in_vain};

/// The shortest time between two checks for units that have waited too long: each check looks at
/// all units that wait.
const STEP: Duration = Duration::from_millis(10);

/// The availability of a lane's database, as found by its connections and by probes.
pub(super) struct Availability {
    lane: Name,
    /// The time for which a client's units wait for a database that is away.
    away_wait: Duration,
    away: Option<Away>,
    /// The last message of a database that refused a connection, which is logged only once.
    refused: Option<Box<str>>,
    note: watch::Sender<Option<Away>>,
    gauge: Gauge,
}

impl Availability {
    /// Begins with a database of which nothing is known. `note` shows the lane's handles that the
    /// database is away, `gauge` the metrics.
    pub(super) fn new(
        lane: Name,
        away_wait: Duration,
        note: watch::Sender<Option<Away>>,
        gauge: Gauge,
    ) -> Self {
        Self {
            lane,
            away_wait,
            away: None,
            refused: None,
            note,
            gauge,
        }
    }

    /// Notes that a connection is open.
    pub(super) fn connected(&mut self) {
        self.refused = None;
        self.back();
    }

    fn back(&mut self) {
        if let Some(away) = self.away.take() {
            let away_for = away.since.elapsed();
            tracing::warn!(lane = %self.lane, ?away_for, "the database is back");
            self.show();
        }
    }

    /// Notes the result of a probe: a sign of life (`None`) or a fault. A lane with something to do
    /// ignores a fault, because its own connections will meet it; a sign of life lets it accept
    /// writes again.
    pub(super) fn probed(&mut self, fault: Option<Box<Fault>>, is_idle: bool) {
        match (fault, is_idle) {
            (None, true) => self.back(),
            (None, false) => {
                if let Some(away) = &mut self.away {
                    away.is_only_probed = true;
                    self.show();
                }
            }
            (Some(fault), true) => self.gone(*fault, true),
            (Some(_), false) => {}
        }
    }

    /// Notes that the database cannot be reached.
    pub(super) fn gone(&mut self, fault: Fault, is_only_probed: bool) {
        let now = Instant::now();
        match &mut self.away {
            Some(away) => {
                away.fault = fault;
                away.is_only_probed &= is_only_probed;
            }
            None => {
                tracing::warn!(
                    lane = %self.lane, %fault, away_wait = ?self.away_wait,
                    "the database cannot be reached; writes wait, and Windrow goes on trying"
                );
                self.away = Some(Away {
                    since: now,
                    fault,
                    look_at: now + self.away_wait,
                    is_only_probed,
                });
            }
        }
        self.show();
    }

    /// Notes that the database refuses connections, for a reason that another attempt does not
    /// change.
    pub(super) fn refuses(&mut self, fault: &Fault) {
        if self.refused.as_ref() != Some(&fault.message) {
            tracing::warn!(lane = %self.lane, %fault, "the database refuses the connection");
            self.refused = Some(fault.message.clone());
        }
        if self.away.take().is_some() {
            self.show();
        }
    }

    /// Returns the fault of writes that arrive after the database has been away for too long.
    pub(super) fn refusal(&self, policy: RetryPolicy) -> Option<Fault> {
        let wait = policy.away_wait(self.away_wait);
        self.away.as_ref()?.refusal(wait)
    }

    /// Returns the time at which units will have waited too long for a database that is away.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.away.as_ref().map(|away| away.look_at)
    }

    /// Fails the units that have waited too long for a database that is away. `is_open`: the lane
    /// is not ending. Units of background sources do not keep a lane from ending.
    pub(super) fn expire(&mut self, ledger: &mut Ledger, is_open: bool) {
        let Some(away) = &mut self.away else { return };
        let (now, wait) = (Instant::now(), self.away_wait);
        if now < away.look_at {
            return;
        }
        let fault = waited_in_vain(&away.fault, wait);
        let oldest = ledger.fail_queued(&fault, |tickets, ticket, arrived| {
            let wait = match is_open {
                true => tickets.away_wait(ticket, wait),
                false => wait,
            };
            now.saturating_duration_since(arrived) < wait
        });
        let step = (wait / 50).max(STEP);
        let next = oldest.map_or(now + wait, |arrived| arrived + wait);
        away.look_at = next.max(now + step);
    }

    fn show(&self) {
        self.gauge.set(i64::from(self.away.is_some()));
        self.note.send_replace(self.away.clone());
    }
}
