//! Single-row requests a second, and their cost: Windrow against the same rows written directly.

mod direct;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use windrow_testkit::process::Windrow;

use crate::experiments::outcomes;
use crate::figures::{LIMIT, Run};
use crate::http::closed::{self, Closed, Until};
use crate::http::{Health, Inserts, Job, Live, Report};
use crate::limit;
use crate::number::as_f64;
use crate::say;
use crate::servers::cluster::Cluster;
use crate::servers::{self, Kind, Store, Table};

/// Rows before this one of each connection are written while measuring, rows from it on while
/// warming up.
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
    /// Repetitions before the first that counts: a server on a Java machine needs some.
    #[arg(long, default_value_t = 0)]
    pub warm_ups: u32,
    /// Beside it the same requests, each with an `Idempotency-Key`.
    #[arg(long)]
    pub keys: bool,
    /// A CrateDB cluster that runs already, as cratedb://HOST:PORT.
    #[arg(long, required_if_eq("to", "cratedb"))]
    pub url: Option<String>,
    /// Replicas of each shard of CrateDB's table.
    #[arg(long, default_value_t = 1)]
    pub replicas: u32,
    /// Processes of CrateDB's nodes, whose CPU time is counted.
    #[arg(long, value_delimiter = ',')]
    pub pids: Vec<u32>,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

/// Windrow as it is.
const WINDROW: &str = "windrow";
/// The same with requests that have keys.
const KEYED: &str = "windrow, with keys";
/// Windrow with an option to send each row alone.
const UNBATCHED: &str = "windrow --batch-rows 1";
/// The same program and the same clients, which ask for nothing but whether it is there: what its
/// HTTP alone costs here.
const HEALTH: &str = "windrow, /healthz";
/// The database without Windrow.
const DIRECT: &str = "direct";
/// The same by prepared statements, where the usual program has none.
const PREPARED: &str = "direct, prepared";

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
        let store = self.store()?;
        store.tell_version(&mut run)?;
        for _ in 0..self.warm_ups {
            self.round(&store, &mut Run::new("warm-up", "not kept"), 0)?;
        }
        for round in 1..=self.rounds {
            self.round(&store, &mut run, round)?;
        }
        self.conclude(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    fn store(&self) -> Result<Store> {
        match (self.to, &self.url) {
            (Kind::CrateDb, Some(url)) => {
                let cluster = Cluster::at(url, self.replicas, self.pids.clone())?;
                Ok(Store::CrateDb(cluster))
            }
            (kind, None) => Store::start(kind),
            (kind, Some(_)) => anyhow::bail!(
                "--url names a CrateDB cluster; {} is started by this program",
                kind.as_str()
            ),
        }
    }

    fn round(&self, store: &Store, run: &mut Run, round: u32) -> Result<()> {
        self.gateway(store, run, round, WINDROW, &[])?;
        self.gateway(store, run, round, HEALTH, &[])?;
        if self.keys {
            self.gateway(store, run, round, KEYED, &[])?;
        }
        self.direct(store, run, round)?;
        match self.to {
            Kind::Sqlite => self.gateway(store, run, round, UNBATCHED, &["--batch-rows", "1"])?,
            Kind::MariaDb => self.prepared(store, run, round)?,
            Kind::Postgres | Kind::CrateDb => {}
        }
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
        let warm = self.offer(&windrow, Duration::from_secs(1), &job(arm, WARM))?;
        let before = (store.cpu_time(), windrow.cpu_time()?);
        let report = say::during(arm, self.time(), || {
            self.offer(&windrow, self.time(), &job(arm, 0))
        })?;
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
        metrics.push((LIMIT, limit::of_http(self.connections)?));
        run.add_all(round, arm, &metrics);
        match arm {
            HEALTH => succeeded(&report)?,
            _ => check(&report, &table, warm.successes())?,
        }
        table.clear()
    }

    fn offer(&self, windrow: &Windrow, time: Duration, job: &Arc<dyn Job>) -> Result<Report> {
        let load = Closed {
            connections: self.connections,
            until: Until::Elapsed(time),
        };
        closed::run(windrow.address(), &load, job, &Arc::new(Live::default()))
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        let times = |of: &str, run: &Run| -> Result<f64> {
            Ok(run.median(WINDROW, "rows/s")? / run.median(of, "rows/s")?)
        };
        run.remark(format!(
            "{:.2} of the requests a second that the same program answers without writing anything",
            times(HEALTH, run)?
        ));
        let direct = times(DIRECT, run)?;
        let share = |of: &str, run: &Run| -> Result<f64> {
            let cpu = "database CPU us/row";
            Ok(run.median(WINDROW, cpu)? / run.median(of, cpu)?)
        };
        match self.to {
            Kind::Postgres => {
                let share = share(DIRECT, run)?;
                run.remark(format!(
                    "{direct:.2} times the rows per second of pgbench with prepared single-row inserts, \
                     at {share:.3} of PostgreSQL's CPU per row"
                ));
            }
            Kind::Sqlite => {
                let alone = times(UNBATCHED, run)?;
                run.remark(format!(
                    "{direct:.1} times the rows per second of a program that writes one row a transaction, \
                     {alone:.1} times those of Windrow that does so"
                ));
            }
            Kind::MariaDb => {
                for (arm, program) in [
                    (DIRECT, "mariadb-slap with single-row inserts"),
                    (PREPARED, "a program with prepared single-row inserts"),
                ] {
                    let (times, share) = (times(arm, run)?, share(arm, run)?);
                    run.remark(format!(
                        "{times:.2} times the rows per second of {program}, at {share:.3} of MariaDB's CPU per row"
                    ));
                }
            }
            Kind::CrateDb => run.remark(format!(
                "{direct:.2} times the rows per second of clients that send the same rows to CrateDB's own endpoint"
            )),
        }
        Ok(())
    }
}

/// Returns the requests of an arm's clients, with rows from `first` on.
fn job(arm: &str, first: u64) -> Arc<dyn Job> {
    match arm {
        HEALTH => Arc::new(Health),
        _ => Arc::new(Inserts::from(first).keyed(arm == KEYED)),
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
    succeeded(report)?;
    outcomes::all_there(report.successes() + before, table.count()?)
}

fn succeeded(report: &Report) -> Result<()> {
    anyhow::ensure!(
        report.successes() == report.requests(),
        "requests failed: {:?}\n{}",
        report.outcomes,
        report.samples.join("\n")
    );
    Ok(())
}
