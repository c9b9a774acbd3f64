//! What a load brought.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;

use crate::number::as_f64;

/// What one request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Answered with success.
    Success,
    /// Answered with an error: the row is certainly not there.
    Refused(u16),
    /// Answered that the outcome is unknown (SQLSTATE 08007).
    Unknown,
    /// Not answered: the connection ended.
    Lost,
}

impl Outcome {
    /// Reads it from an answer.
    pub fn of(status: u16, body: &[u8]) -> Self {
        match status {
            200..300 => Self::Success,
            _ if memchr::memmem::find(body, b"08007").is_some() => Self::Unknown,
            _ => Self::Refused(status),
        }
    }
}

/// Counts while a load runs, for whoever watches.
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

    /// Requests answered with success so far.
    pub fn successes(&self) -> u64 {
        self.success.load(Ordering::Relaxed)
    }

    /// Requests that came to anything else so far.
    pub fn others(&self) -> u64 {
        self.other.load(Ordering::Relaxed)
    }
}

/// Latencies and outcomes of a load.
#[derive(Clone, Debug)]
pub struct Report {
    latencies: Histogram<u64>,
    /// How many requests came to what.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// The first few errors, in the server's words.
    pub samples: Vec<String>,
    /// CPU time of the generator's own thread.
    pub generator_cpu: Duration,
}

/// Latencies above this (an hour) count as this.
const LONGEST_US: u64 = 3_600_000_000;

/// Errors that are kept word for word.
const SAMPLES: usize = 5;

impl Report {
    /// Nothing yet.
    ///
    /// # Errors
    /// Never: these are bounds and a precision that a histogram can have.
    pub fn new() -> Result<Self> {
        Ok(Self {
            latencies: Histogram::new_with_bounds(1, LONGEST_US, 3)?,
            outcomes: BTreeMap::new(),
            elapsed: Duration::ZERO,
            samples: Vec::new(),
            generator_cpu: Duration::ZERO,
        })
    }

    /// Takes one outcome and how long it took.
    pub(super) fn add(&mut self, outcome: Outcome, took: Duration, answer: &[u8]) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(micros.max(1));
        *self.outcomes.entry(outcome).or_default() += 1;
        if outcome != Outcome::Success && self.samples.len() < SAMPLES {
            let text = String::from_utf8_lossy(answer).into_owned();
            self.samples.push(format!("{outcome:?} {text}"));
        }
    }

    /// Joins what another connection saw.
    ///
    /// # Errors
    /// Never: the histograms grow as needed.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        for (outcome, n) in &other.outcomes {
            *self.outcomes.entry(*outcome).or_default() += n;
        }
        let room = SAMPLES.saturating_sub(self.samples.len());
        self.samples
            .extend(other.samples.iter().take(room).cloned());
        Ok(())
    }

    /// Requests in all.
    pub fn requests(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Requests answered with success.
    pub fn successes(&self) -> u64 {
        self.outcomes.get(&Outcome::Success).copied().unwrap_or(0)
    }

    /// Successes a second.
    pub fn rate(&self) -> f64 {
        as_f64(self.successes()) / self.elapsed.as_secs_f64()
    }

    /// A latency in milliseconds: the value that `percent` of all requests stayed below.
    pub fn latency_ms(&self, percent: f64) -> f64 {
        as_f64(self.latencies.value_at_percentile(percent)) / 1000.0
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
        assert_eq!((sum.requests(), sum.successes()), (102, 100));
        assert!((sum.rate() - 10.0).abs() < 1e-9);
        assert!(
            (sum.latency_ms(50.0) - 51.0).abs() < 0.1,
            "{}",
            sum.latency_ms(50.0)
        );
        assert_eq!(sum.samples, ["Refused(409) taken", "Refused(409) taken"]);
    }
}
