//! Clients that behave well: each inserts a row at fixed times and waits for the answer.

use std::time::Duration;

use anyhow::Result;

use crate::experiments::outcomes::Remembered;
use crate::figures::Metrics;
use crate::generator::pg::Mode;
use crate::generator::{Clients, Running, Schedule, Style, Target, Until};
use crate::number::as_f64;

/// The good clients, half of them over each protocol.
pub(super) struct Good {
    pub(super) clients: usize,
    /// The number of the first one: their rows are numbered by it.
    pub(super) first: usize,
    /// Rows a second of all of them.
    pub(super) rate: f64,
    pub(super) time: Duration,
}

impl Good {
    /// Runs them to their end. `targets`: for SQL and for HTTP.
    ///
    /// # Errors
    /// One cannot connect at the beginning.
    pub(super) fn run(&self, targets: &[Target; 2], remembered: &Remembered) -> Result<Metrics> {
        let (sql, http) = (self.clients - self.clients / 2, self.clients / 2);
        let [sql_target, http_target] = targets;
        let start = |target, clients, first: usize, style| {
            let job = remembered.of(style, self.first + first);
            let rate = self.rate * as_f64(clients as u64) / as_f64(self.clients as u64);
            let clients = Clients::open(target, clients)?.prepare(clients, &*job)?;
            let (schedule, until) = (Schedule::Even { rate }, Until::after(self.time));
            anyhow::Ok(Running::start(clients, schedule, until, job))
        };
        let running = [
            ("pg", start(sql_target, sql, 0, Style::Pg(Mode::Prepared))?),
            ("http", start(http_target, http, sql, Style::Http)?),
        ];
        let mut metrics = Metrics::new();
        for (name, load) in running {
            let report = load.wait()?;
            let failures = report.calls() - report.successes();
            metrics = metrics
                .with(format!("{name} p50 ms"), report.latency_ms(50.0))
                .with(format!("{name} p99 ms"), report.latency_ms(99.0))
                .with(format!("{name} max ms"), report.latency_ms(100.0))
                .with(format!("{name} rows"), as_f64(report.calls()))
                .with(format!("{name} failures"), as_f64(failures));
        }
        Ok(metrics)
    }
}
