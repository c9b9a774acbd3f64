//! The number and the delays of attempts of a lane.

use std::time::Duration;

use windrow_core::Backoff;

/// Attempts after which a sink that reports "not tried" for a unit that runs alone is not believed.
pub(crate) const MAX_ATTEMPTS: u32 = 10;

/// Returns the delays of units that met a conflict with another transaction. The first retry is
/// immediate, because the other transaction has usually ended.
pub(crate) fn conflict_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(2), Duration::from_millis(128)).first_at_once()
}

/// Returns the delays of units whose outcome is unknown: the server may still be executing them.
pub(crate) fn unknown_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(100), Duration::from_secs(2))
}

/// Returns the delays between attempts to connect.
pub(crate) fn connect_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(20), Duration::from_secs(1))
}
