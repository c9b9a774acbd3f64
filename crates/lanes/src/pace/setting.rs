//! The setting of a lane, and its limits.

use windrow_core::{Limits, Profile};

/// The limits of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Flights at once.
    pub flights: usize,
    /// Rows in a batch.
    pub rows: usize,
}

/// The number of flights and the size of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Flights at once, at most.
    pub flights: usize,
    /// Rows in a batch, at most.
    pub rows: usize,
    /// True if a flight waits a moment for the clients that the one before it answered
    /// ([`super::Gather`]).
    pub gather: bool,
}

impl Bounds {
    /// The bounds of a sink and of a user, whichever is lower; at least one flight of one row.
    pub fn new(profile: &Profile, limits: &Limits) -> Self {
        let lower = |limit: Option<usize>, most: usize| limit.unwrap_or(most).min(most).max(1);
        Self {
            flights: lower(limits.flights, profile.flights),
            rows: lower(limits.batch_rows, profile.batch_rows),
        }
    }
}
