//! How often and when a lane runs again what was rolled back.

use std::time::Duration;

use windrow_core::Backoff;

/// How often a sink is believed that holds a unit back which has nobody to wait for.
pub(crate) const MAX_ATTEMPTS: u32 = 10;

/// Returns the delays of units that others were in the way of: none after the first time, for the
/// others have finished.
pub(crate) fn conflict_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(2), Duration::from_millis(128)).first_at_once()
}

/// Returns the delays of units whose outcome is unknown: the server may still execute them.
pub(crate) fn unknown_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(100), Duration::from_secs(2))
}

/// Returns the delays between attempts to connect.
pub(crate) fn connect_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(20), Duration::from_secs(1))
}
