//! The result of a load: its latencies and outcomes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;

use crate::figures::Metrics;
use crate::number::as_f64;

/// The outcome of one call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Answered with success.
    Success,
    /// Answered with an HTTP status that is an error: the row is certainly not there.
    Refused(u16),
    /// Answered with an SQLSTATE: the row is certainly not there.
    Failed([u8; 5]),
    /// Answered that the outcome is unknown (SQLSTATE 08007).
    Unknown,
    /// Not answered: the connection ended.
    Lost,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::Refused(status) => write!(f, "{status}"),
            Self::Failed(code) => f.write_str(&String::from_utf8_lossy(code)),
            Self::Unknown => f.write_str("unknown"),
            Self::Lost => f.write_str("lost"),
        }
    }
}

/// Latencies and outcomes of a load.
#[derive(Clone, Debug)]
pub struct Report {
    latencies: Histogram<u64>,
    /// The number of calls by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// The time from the first call to the last answer.
    pub elapsed: Duration,
    /// The first few errors, in the server's words.
    pub samples: Vec<String>,
    /// CPU time of the generator's own thread; nothing if it had many.
    pub generator_cpu: Option<Duration>,
}

/// Latencies above this (an hour) count as this.
const MAX_LATENCY_US: u64 = 3_600_000_000;

/// Errors that are kept word for word.
const MAX_SAMPLES: usize = 5;

impl Report {
    /// Returns an empty report.
    ///
    /// # Errors
    /// Never: these are bounds and a precision that a histogram can have.
    pub fn new() -> Result<Self> {
        Ok(Self {
            latencies: Histogram::new_with_bounds(1, MAX_LATENCY_US, 3)?,
            outcomes: BTreeMap::new(),
            elapsed: Duration::ZERO,
            samples: Vec::new(),
            generator_cpu: None,
        })
    }

    /// Adds an outcome and its latency.
    pub(super) fn add(&mut self, outcome: Outcome, took: Duration, answer: &[u8]) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(micros.max(1));
        *self.outcomes.entry(outcome).or_default() += 1;
        if outcome != Outcome::Success && self.samples.len() < MAX_SAMPLES {
            let text = String::from_utf8_lossy(answer).into_owned();
            self.samples.push(format!("{outcome:?} {text}"));
        }
    }

    /// Adds the report of another load.
    ///
    /// # Errors
    /// Never: the histograms have the same bounds.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        for (outcome, n) in &other.outcomes {
            *self.outcomes.entry(*outcome).or_default() += n;
        }
        let left = MAX_SAMPLES.saturating_sub(self.samples.len());
        self.samples
            .extend(other.samples.iter().take(left).cloned());
        Ok(())
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Returns the number of calls that succeeded.
    pub fn successes(&self) -> u64 {
        self.outcomes.get(&Outcome::Success).copied().unwrap_or(0)
    }

    /// Returns the answers a second, of all outcomes.
    pub fn rate(&self) -> f64 {
        as_f64(self.calls()) / self.elapsed.as_secs_f64()
    }

    /// Returns the latency in milliseconds that `percent` of all calls stayed below.
    pub fn latency_ms(&self, percent: f64) -> f64 {
        as_f64(self.latencies.value_at_percentile(percent)) / 1000.0
    }

    /// Returns the usual metrics: answers a second, counted in a unit, and latencies.
    pub fn metrics(&self, unit: &str) -> Metrics {
        let rate = Metrics::new().with(format!("{unit}s/s"), self.rate());
        rate.and(self.latencies())
    }

    /// Returns the usual latencies.
    pub fn latencies(&self) -> Metrics {
        Metrics::new()
            .with("p50 ms", self.latency_ms(50.0))
            .with("p99 ms", self.latency_ms(99.0))
            .with("p99.9 ms", self.latency_ms(99.9))
    }

    /// Checks that every call had one outcome.
    ///
    /// # Errors
    /// One had another.
    pub fn all(&self, outcome: Outcome) -> Result<()> {
        let own = self.outcomes.get(&outcome).copied().unwrap_or(0);
        ensure!(
            own == self.calls(),
            "calls had other outcomes than {outcome:?}: {:?}\n{}",
            self.outcomes,
            self.samples.join("\n")
        );
        Ok(())
    }
}

/// Counters of a running load.
#[derive(Debug, Default)]
pub struct Live {
    success: AtomicU64,
    other: AtomicU64,
}

impl Live {
    pub(super) fn count(&self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Success => &self.success,
            _ => &self.other,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the calls that succeeded so far.
    pub fn successes(&self) -> u64 {
        self.success.load(Ordering::Relaxed)
    }

    /// Returns the calls with any other outcome so far.
    pub fn others(&self) -> u64 {
        self.other.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_counts_survive_merging() {
        let mut sum = Report::new().unwrap();
        for half in [1..=50, 51..=100] {
            let mut part = Report::new().unwrap();
            for ms in half {
                part.add(Outcome::Success, Duration::from_millis(ms), b"");
            }
            part.add(Outcome::Refused(409), Duration::from_hours(2), b"taken");
            sum.merge(&part).unwrap();
        }
        sum.elapsed = Duration::from_secs(10);
        assert_eq!((sum.calls(), sum.successes()), (102, 100));
        assert!((sum.rate() - 10.2).abs() < 1e-9);
        let median = sum.latency_ms(50.0);
        assert!((median - 51.0).abs() < 0.1, "{median}");
        assert_eq!(sum.samples, ["409 taken", "409 taken"]);
        let error = sum.all(Outcome::Success).unwrap_err().to_string();
        assert!(error.contains("409: 2"), "{error}");
    }
}
