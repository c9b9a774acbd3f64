//! The result of a load: its latencies and outcomes, whatever protocol it speaks.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;

use crate::number::as_f64;

/// The outcome of one request.
pub trait LoadOutcome: Copy + Debug + Ord {
    /// True if the request succeeded.
    fn is_success(self) -> bool;
}

/// Latencies and outcomes of a load.
#[derive(Clone, Debug)]
pub struct LoadReport<O> {
    latencies: Histogram<u64>,
    /// The number of requests by outcome.
    pub outcomes: BTreeMap<O, u64>,
    /// The time from the first request to the last answer.
    pub elapsed: Duration,
    /// The first few errors, in the server's words.
    pub samples: Vec<String>,
    /// CPU time of the generator's own thread.
    pub generator_cpu: Duration,
}

/// Latencies above this (an hour) count as this.
const MAX_LATENCY_US: u64 = 3_600_000_000;

/// Errors that are kept word for word.
const MAX_SAMPLES: usize = 5;

impl<O: LoadOutcome> LoadReport<O> {
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
            generator_cpu: Duration::ZERO,
        })
    }

    /// Adds an outcome and its latency.
    pub(crate) fn add(&mut self, outcome: O, took: Duration, answer: &[u8]) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(micros.max(1));
        *self.outcomes.entry(outcome).or_default() += 1;
        if !outcome.is_success() && self.samples.len() < MAX_SAMPLES {
            let text = String::from_utf8_lossy(answer).into_owned();
            self.samples.push(format!("{outcome:?} {text}"));
        }
    }

    /// Adds the report of another connection.
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

    /// Returns the number of requests.
    pub fn requests(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Returns the number of requests that succeeded.
    pub fn successes(&self) -> u64 {
        let successes = self.outcomes.iter().filter(|(o, _)| o.is_success());
        successes.map(|(_, n)| n).sum()
    }

    /// Returns the successes a second.
    pub fn rate(&self) -> f64 {
        as_f64(self.successes()) / self.elapsed.as_secs_f64()
    }

    /// Returns the answers a second, of all outcomes.
    pub fn answer_rate(&self) -> f64 {
        as_f64(self.requests()) / self.elapsed.as_secs_f64()
    }

    /// Returns the latency in milliseconds that `percent` of all requests stayed below.
    pub fn latency_ms(&self, percent: f64) -> f64 {
        as_f64(self.latencies.value_at_percentile(percent)) / 1000.0
    }

    /// Returns the usual metrics: answers a second, counted in a unit, and latencies.
    pub fn metrics(&self, unit: &str) -> Vec<(String, f64)> {
        vec![
            (format!("{unit}s/s"), self.answer_rate()),
            ("p50 ms".to_owned(), self.latency_ms(50.0)),
            ("p99 ms".to_owned(), self.latency_ms(99.0)),
            ("p99.9 ms".to_owned(), self.latency_ms(99.9)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Outcome, Report};

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
