//! The numbers of one measurement, and the CPU time that it costs.

use std::time::Duration;

use crate::number::as_f64;

/// The numbers of one measurement by their names, which hold the unit.
#[derive(Clone, Debug, Default)]
pub struct Metrics(pub(super) Vec<(String, f64)>);

impl Metrics {
    /// Returns no metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same with another metric.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: f64) -> Self {
        self.0.push((name.into(), value));
        self
    }

    /// Returns the same with another metric if there is a value.
    #[must_use]
    pub fn maybe(self, name: impl Into<String>, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Returns the same with another metric, which counts bytes.
    #[must_use]
    pub fn with_mib(self, name: &str, bytes: u64) -> Self {
        self.with(name, mib(bytes))
    }

    /// Returns the same with those of another measurement.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns a metric.
    pub fn get(&self, name: &str) -> Option<f64> {
        let found = self.0.iter().find(|(metric, _)| metric == name);
        found.map(|(_, value)| *value)
    }
}

type Clock<'a> = Box<dyn Fn() -> Option<Duration> + 'a>;

/// The CPU time of those who take part, since it was started.
pub struct Meter<'a> {
    unit: &'static str,
    clocks: Vec<(&'static str, Clock<'a>, Option<Duration>)>,
}

impl<'a> Meter<'a> {
    /// Returns a meter of CPU time for each row, or whatever else is counted.
    pub fn new(unit: &'static str) -> Self {
        let clocks = Vec::new();
        Self { unit, clocks }
    }

    /// Starts to count another clock, which may be unknown.
    #[must_use]
    pub fn of(mut self, who: &'static str, clock: impl Fn() -> Option<Duration> + 'a) -> Self {
        let before = clock();
        self.clocks.push((who, Box::new(clock), before));
        self
    }

    /// Returns the time that each of so many rows took since the start.
    pub fn metrics(&self, rows: u64) -> Metrics {
        let mut metrics = Metrics::new();
        for (who, clock, before) in &self.clocks {
            let spent = clock().zip(*before).map(|(now, before)| now - before);
            let name = format!("{who} CPU us/{}", self.unit);
            metrics = metrics.maybe(name, spent.map(|spent| micros(spent, rows)));
        }
        metrics
    }
}

/// Returns bytes in MiB.
pub fn mib(bytes: u64) -> f64 {
    as_f64(bytes) / 1_048_576.0
}

/// Returns the microseconds for each of so many rows.
pub fn micros(time: Duration, rows: u64) -> f64 {
    time.as_secs_f64() * 1e6 / as_f64(rows.max(1))
}
