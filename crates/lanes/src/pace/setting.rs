//! The setting of a lane, and its limits.

use windrow_core::{Limits, Profile};

/// The limits of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most flights at once.
    pub flights: usize,
    /// The most rows in a batch.
    pub rows: usize,
}

/// The number of flights and the size of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The most flights at once.
    pub flights: usize,
    /// The most rows in a batch.
    pub rows: usize,
    /// True if a batch waits a moment for the clients that the flight before it answered
    /// ([`super::Gather`]).
    pub gather: bool,
}

impl Bounds {
    /// Returns the bounds of a sink and of the settings, whichever is lower; at least one flight of
    /// one row.
    pub fn new(profile: &Profile, limits: &Limits) -> Self {
        let lower = |limit: Option<usize>, most: usize| limit.unwrap_or(most).min(most).max(1);
        Self {
            flights: lower(limits.flights, profile.flights),
            rows: lower(limits.batch_rows, profile.batch_rows),
        }
    }
}
