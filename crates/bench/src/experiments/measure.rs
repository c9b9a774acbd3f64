//! One load on one server: warmed up, measured, and counted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use windrow_testkit::process::Windrow;

use super::outcomes;
use crate::figures::{Meter, Metrics, micros};
use crate::generator::{Clients, Job, Live, Outcome, Report, Schedule, Target, Until};
use crate::say;
use crate::servers::{self, Store, Table};

/// Rows before this one of each client are written while measuring, rows from it on while warming
/// up.
const WARM: u64 = 50_000_000;

/// A load.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// The name that is shown meanwhile.
    pub(super) arm: String,
    /// The clients, and those of them that call.
    pub(super) clients: usize,
    pub(super) busy: usize,
    pub(super) schedule: Schedule,
    /// The time before the measurement, in which the same is done.
    pub(super) warm_up: Duration,
    pub(super) until: Until,
    /// The unit in which calls are counted.
    pub(super) unit: &'static str,
}

/// The result of a load.
pub(super) struct Measured {
    pub(super) warm: Report,
    pub(super) report: Report,
    /// Rates, latencies and CPU time.
    pub(super) metrics: Metrics,
}

impl Offer {
    /// Returns a load of clients that each make their next call when the last one is answered.
    pub(super) fn closed(arm: &str, clients: usize, time: Duration) -> Self {
        Self {
            arm: arm.to_owned(),
            clients,
            busy: clients,
            schedule: Schedule::Closed,
            warm_up: Duration::from_secs(1),
            until: Until::after(time),
            unit: "row",
        }
    }

    /// Warms up and measures. `job` makes the calls, with rows from a number on.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) fn measure<'a>(
        &self,
        target: &Target,
        meter: impl FnOnce(Meter<'a>) -> Meter<'a>,
        job: impl Fn(u64) -> Arc<dyn Job>,
    ) -> Result<Measured> {
        let clients = Clients::open(target, self.clients)?;
        self.measure_open(clients, meter, job)
    }

    /// The same with clients that are connected.
    pub(super) fn measure_open<'a>(
        &self,
        clients: Clients,
        meter: impl FnOnce(Meter<'a>) -> Meter<'a>,
        job: impl Fn(u64) -> Arc<dyn Job>,
    ) -> Result<Measured> {
        let (before, counted, live) = (job(WARM), job(0), Arc::new(Live::default()));
        let mut clients = clients.prepare(self.busy, &*before)?;
        let warm_up = Until::after(self.warm_up);
        let warm = clients.run(self.schedule, &warm_up, &before, &live)?;
        let meter = meter(Meter::new(self.unit));
        let time = self.until.time;
        let report = say::during(&self.arm, time, || {
            clients.run(self.schedule, &self.until, &counted, &live)
        })?;
        let metrics = report
            .metrics(self.unit)
            .and(meter.metrics(report.calls()))
            .maybe(
                format!("generator CPU us/{}", self.unit),
                report.generator_cpu.map(|cpu| micros(cpu, report.calls())),
            );
        Ok(Measured {
            warm,
            report,
            metrics,
        })
    }
}

impl Measured {
    /// Returns the rows that were confirmed, those of the warm-up too.
    pub(super) fn written(&self) -> u64 {
        self.warm.successes() + self.report.successes()
    }

    /// Checks that every call succeeded, and that the table has all rows and no others.
    ///
    /// # Errors
    /// One failed, or a row is missing.
    pub(super) fn check(&self, table: &Table) -> Result<()> {
        self.report.all(Outcome::Success)?;
        outcomes::all_there(self.written(), table.count()?)
    }
}

/// Windrow before a database of its own.
#[derive(Debug)]
pub(super) struct Bed {
    pub(super) table: Table,
    pub(super) windrow: Windrow,
}

impl Bed {
    /// Starts Windrow before an empty table `readings`.
    ///
    /// # Errors
    /// Something cannot be started.
    pub(super) fn start(store: &Store, options: &[&str]) -> Result<Self> {
        Self::before(store.table()?, options)
    }

    /// Starts Windrow before a table.
    ///
    /// # Errors
    /// Windrow cannot be started.
    pub(super) fn before(table: Table, options: &[&str]) -> Result<Self> {
        let windrow = servers::windrow(&table.url, options)?;
        Ok(Self { table, windrow })
    }

    /// Returns the server of HTTP clients.
    pub(super) fn target(&self) -> Target {
        Target::Http(self.windrow.address())
    }

    /// Returns the server of SQL clients.
    ///
    /// # Errors
    /// Windrow does not listen for them.
    pub(super) fn pg_target(&self) -> Result<Target> {
        servers::sql_address(&self.windrow, &self.table.url).map(Target::Pg)
    }

    /// Adds the CPU time of both to a meter.
    pub(super) fn meter<'a>(&'a self, store: &'a Store) -> impl FnOnce(Meter<'a>) -> Meter<'a> {
        |meter| {
            meter
                .of("windrow", || self.windrow.cpu_time().ok())
                .of("database", || store.cpu_time())
        }
    }
}
