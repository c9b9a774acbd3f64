//! How many single-row requests a second, at what cost: Windrow against the same rows written directly.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use windrow_testkit::process::Windrow;

use crate::baseline::{pgbench, sqlite};
use crate::figures::Run;
use crate::http::closed::{self, Closed, Until};
use crate::http::report::as_f64;
use crate::http::{Inserts, Job, Live, Report};
use crate::say;
use crate::servers::{self, Kind, Store, Table};

/// Rows before this one of each connection are written while measuring, rows from it on while warming up.
const WARM: u64 = 50_000_000;

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Load {
    /// The database.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// Clients, each with one request under way.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

/// Windrow as it is.
const WINDROW: &str = "windrow";
/// Windrow that is told to send each row alone.
const UNBATCHED: &str = "windrow --batch-rows 1";
/// The database without Windrow.
const DIRECT: &str = "direct";

impl Load {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started or fails.
    pub fn run(&self, root: &Path) -> Result<()> {
        let name = format!("load-{}-{}", self.to.as_str(), self.connections);
        let title = format!(
            "Single-row requests into {}, {} connections",
            self.to.as_str(),
            self.connections
        );
        let mut run = Run::new(name, title);
        let store = Store::start(self.to)?;
        store.tell_version(&mut run)?;
        for round in 1..=self.rounds {
            self.gateway(&store, &mut run, round, WINDROW, &[])?;
            self.direct(&store, &mut run, round)?;
            if self.to == Kind::Sqlite {
                self.gateway(&store, &mut run, round, UNBATCHED, &["--batch-rows", "1"])?;
            }
        }
        self.conclude(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    fn gateway(
        &self,
        store: &Store,
        run: &mut Run,
        round: u32,
        arm: &str,
        arguments: &[&str],
    ) -> Result<()> {
        let table = store.table()?;
        let mut all: Vec<&str> = arguments.to_vec();
        all.extend(self.windrow.iter().map(String::as_str));
        let windrow = servers::windrow(&table.url(), &all)?;
        let warm = self.offer(&windrow, Duration::from_secs(1), WARM)?;
        let before = (store.cpu_time(), windrow.cpu_time()?);
        let report = say::during(arm, self.time(), || self.offer(&windrow, self.time(), 0))?;
        let requests = as_f64(report.requests()).max(1.0);
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / requests;
        let mut metrics = latencies(&report);
        metrics.push(("windrow CPU us/row", micros(windrow.cpu_time()? - before.1)));
        if let (Some(before), Some(after)) = (before.0, store.cpu_time()) {
            metrics.push(("database CPU us/row", micros(after - before)));
        }
        metrics.push(("generator CPU us/row", micros(report.generator_cpu)));
        let rss = as_f64(windrow.resident_bytes()?) / 1_048_576.0;
        metrics.push(("windrow RSS MiB", rss));
        run.add_all(round, arm, &metrics);
        check(&report, &table, warm.successes())
    }

    fn offer(&self, windrow: &Windrow, time: Duration, first: u64) -> Result<Report> {
        let load = Closed {
            connections: self.connections,
            until: Until::Elapsed(time),
        };
        let job: Arc<dyn Job> = Arc::new(Inserts::from(first));
        closed::run(windrow.address(), &load, &job, &Arc::new(Live::default()))
    }

    fn direct(&self, store: &Store, run: &mut Run, round: u32) -> Result<()> {
        let table = store.table()?;
        let metrics = match (&table, store) {
            (Table::Postgres(url), Store::Postgres(server)) => {
                let before = server.cpu_time();
                let direct = say::during(DIRECT, self.time(), || {
                    pgbench::run(server, url, self.connections, self.time())
                })?;
                let cpu = (server.cpu_time() - before).as_secs_f64();
                vec![
                    ("rows/s", direct.rate),
                    ("mean ms", direct.latency_ms),
                    ("database CPU us/row", cpu * 1e6 / as_f64(direct.rows)),
                ]
            }
            (Table::Sqlite(file), _) => {
                let written = say::during(DIRECT, self.time(), || sqlite::run(file, self.time()))?;
                vec![(
                    "rows/s",
                    as_f64(written.rows) / written.elapsed.as_secs_f64(),
                )]
            }
            (Table::Postgres(_), Store::Sqlite(_)) => Vec::new(),
        };
        run.add_all(round, DIRECT, &metrics);
        Ok(())
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        let times = |of: &str, run: &Run| -> Result<f64> {
            Ok(run.median(WINDROW, "rows/s")? / run.median(of, "rows/s")?)
        };
        let direct = times(DIRECT, run)?;
        match self.to {
            Kind::Postgres => {
                let cpu = "database CPU us/row";
                let share = run.median(WINDROW, cpu)? / run.median(DIRECT, cpu)?;
                run.remark(format!(
                    "{direct:.2} times the rows per second of pgbench with prepared single-row inserts, \
                     at {share:.3} of PostgreSQL's CPU per row"
                ));
            }
            Kind::Sqlite => {
                let alone = times(UNBATCHED, run)?;
                run.remark(format!(
                    "{direct:.1} times the rows per second of a program that writes one row a transaction, \
                     {alone:.1} times those of Windrow told to do so"
                ));
            }
        }
        Ok(())
    }
}

/// The usual metrics of a report.
pub(super) fn latencies(report: &Report) -> Vec<(&'static str, f64)> {
    vec![
        ("rows/s", report.rate()),
        ("p50 ms", report.latency_ms(50.0)),
        ("p99 ms", report.latency_ms(99.0)),
        ("p99.9 ms", report.latency_ms(99.9)),
    ]
}

/// Every request must have succeeded, and every row be there.
pub(super) fn check(report: &Report, table: &Table, before: u64) -> Result<()> {
    anyhow::ensure!(
        report.successes() == report.requests(),
        "requests failed: {:?}\n{}",
        report.outcomes,
        report.samples.join("\n")
    );
    let (told, there) = (report.successes() + before, table.count()?);
    anyhow::ensure!(
        told == there,
        "{told} rows were confirmed, {there} are there"
    );
    Ok(())
}
