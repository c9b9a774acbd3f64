//! A database that cannot be reached: how long it has been away, and the faults of the writes that
//! wait for it.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::Fault;

/// A database that is away, as seen by the lane's worker and its handles.
#[derive(Clone, Debug)]
pub(crate) struct Away {
    pub(crate) since: Instant,
    pub(crate) fault: Fault,
    /// The next time to look for units that have waited long enough.
    pub(crate) look_at: Instant,
    /// True while only a probe has found the database away, and the lane itself has not tried to
    /// connect since.
    pub(crate) is_only_probed: bool,
}

impl Away {
    /// Returns the fault of writes that arrive now, if the database has been away for too long for
    /// them to wait. Both writes and the readiness check ask this function.
    pub(crate) fn refusal(&self, away_wait: Duration) -> Option<Fault> {
        let away_for = self.since.elapsed();
        // If only a probe found the database away, the write tries for itself: the database may be
        // back.
        (!self.is_only_probed && away_for >= away_wait)
            .then(|| away_before(&self.fault, away_for, away_wait))
    }
}

/// Returns the fault of units that have waited in vain for a database that cannot be reached.
pub(crate) fn waited_in_vain(fault: &Fault, away_wait: Duration) -> Fault {
    let millis = away_wait.as_millis();
    unavailable(
        fault,
        &format!("it was waited for as long as limits.away_wait = {millis} ms allows"),
    )
}

/// Returns the fault of units that arrived when the database had been away for too long for them to
/// wait.
fn away_before(fault: &Fault, away_for: Duration, away_wait: Duration) -> Fault {
    let (away, limit) = (away_for.as_millis(), away_wait.as_millis());
    unavailable(
        fault,
        &format!(
            "it has been away for {away} ms, which is more than limits.away_wait = {limit} ms, so this write did not wait"
        ),
    )
}

fn unavailable(fault: &Fault, waited: &str) -> Fault {
    let mut reported = fault.clone();
    reported.message = format!(
        "the database cannot be reached; nothing was written ({waited}): {}",
        fault.message
    )
    .into();
    reported
}

/// Returns the fault of units that have waited in vain for a database that another process holds.
pub(crate) fn held_in_vain(fault: &Fault, away_wait: Duration) -> Fault {
    let mut waited = fault.clone();
    waited.message = format!(
        "{}; nothing was written (it was waited for as long as limits.away_wait = {} ms allows)",
        fault.message,
        away_wait.as_millis()
    )
    .into();
    waited
}
