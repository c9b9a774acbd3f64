//! Finds W and the largest batch.

use std::time::Duration;

use windrow_core::{Limits, Profile};

/// x
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// x
    pub flights: usize,
    /// x
    pub rows: usize,
}
impl Bounds {
    /// x
    pub fn new(profile: &Profile, limits: &Limits) -> Self {
        let flights = limits
            .flights
            .unwrap_or(usize::MAX)
            .min(profile.flights)
            .max(1);
        let rows = limits
            .batch_rows
            .unwrap_or(usize::MAX)
            .min(profile.batch_rows)
            .max(1);
        Self { flights, rows }
    }
}
/// x
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// x
    pub flights: usize,
    /// x
    pub rows: usize,
}
/// x
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    /// x
    pub at: Duration,
    /// x
    pub rows: usize,
    /// x
    pub cut: bool,
    /// x
    pub waiting: bool,
    /// x
    pub connected: usize,
}
/// x
#[derive(Debug)]
pub struct Pace {
    setting: Setting,
}
impl Pace {
    /// x
    pub fn new(bounds: Bounds) -> Self {
        Self {
            setting: Setting {
                flights: 1,
                rows: bounds.rows,
            },
        }
    }
    /// x
    pub fn setting(&self) -> Setting {
        self.setting
    }
    /// x
    pub fn landed(&mut self, _: Landing) {}
    /// x
    pub fn disturbed(&mut self) {}
}
