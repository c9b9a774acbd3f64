//! What a load brought.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;

use crate::number::as_f64;

/// What a client was told of one call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Told {
    /// It succeeded.
    Success,
    /// It failed, with this SQLSTATE.
    Error([u8; 5]),
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::Error(code) => f.write_str(&String::from_utf8_lossy(code)),
        }
    }
}

/// Latencies and outcomes of a load.
#[derive(Clone, Debug)]
pub struct Report {
    latencies: Histogram<u64>,
    /// How many calls were told what.
    pub told: BTreeMap<Told, u64>,
    /// From the first call to the last answer.
    pub elapsed: Duration,
}

/// Latencies above this (an hour) count as this.
const LONGEST_US: u64 = 3_600_000_000;

impl Report {
    /// Nothing yet.
    ///
    /// # Errors
    /// Never: these are bounds and a precision that a histogram can have.
    pub fn new() -> Result<Self> {
        Ok(Self {
            latencies: Histogram::new_with_bounds(1, LONGEST_US, 3)?,
            told: BTreeMap::new(),
            elapsed: Duration::ZERO,
        })
    }

    /// Takes one answer and how long it took.
    pub(super) fn add(&mut self, told: Told, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(micros.max(1));
        *self.told.entry(told).or_default() += 1;
    }

    /// Joins what another connection saw.
    ///
    /// # Errors
    /// Never: the histograms have the same bounds.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        for (told, n) in &other.told {
            *self.told.entry(*told).or_default() += n;
        }
        Ok(())
    }

    /// Calls in all.
    pub fn calls(&self) -> u64 {
        self.told.values().sum()
    }

    /// Calls that succeeded.
    pub fn successes(&self) -> u64 {
        self.told.get(&Told::Success).copied().unwrap_or(0)
    }

    /// Answers a second, of all kinds.
    pub fn rate(&self) -> f64 {
        as_f64(self.calls()) / self.elapsed.as_secs_f64()
    }

    /// A latency in milliseconds: the value that `percent` of all calls stayed below.
    pub fn latency_ms(&self, percent: f64) -> f64 {
        as_f64(self.latencies.value_at_percentile(percent)) / 1000.0
    }

    /// The usual metrics.
    pub fn metrics(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("rows/s", self.rate()),
            ("p50 ms", self.latency_ms(50.0)),
            ("p99 ms", self.latency_ms(99.0)),
            ("p99.9 ms", self.latency_ms(99.9)),
        ]
    }
}
