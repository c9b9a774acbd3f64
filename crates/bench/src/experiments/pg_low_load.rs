//! What joining costs where there is little to join: fixed rates over PostgreSQL's protocol, direct
//! and through Windrow.
//!
//! Both get the same arrivals (same seed) from the same generator, a thread for each client.
//! pgbench's `-R` has one schedule for all clients of a thread and measures from it, so its own
//! delays at a few requests a second would hide a difference of some 0.1 ms.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::figures::Run;
use crate::figures::plot::{self, Names, Series};
use crate::http::report::as_f64;
use crate::pg::open::{self, Open};
use crate::pg::{Inserts, Job, Report};
use crate::say;
use crate::servers::pg::{Database, Gate, Way};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct PgLowLoad {
    /// Writes a second, of all clients.
    #[arg(long, value_delimiter = ',', default_values_t = [500, 1000, 5000])]
    pub rates: Vec<u32>,
    /// Clients.
    #[arg(long, default_value_t = 32)]
    pub clients: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

const WAYS: [Way; 2] = [Way::Direct, Way::Windrow];

fn arm(way: Way, rate: u32) -> String {
    format!("{} {rate}/s", way.as_str())
}

impl PgLowLoad {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a write fails.
    pub fn run(&self, root: &Path) -> Result<()> {
        let title = format!(
            "Fixed rates of single-row inserts of {} clients",
            self.clients
        );
        let mut run = Run::new("pg-low-load", title);
        let database = Database::start(Duration::ZERO)?;
        database.tell_versions(&mut run, &WAYS)?;
        for round in 1..=self.rounds {
            for rate in &self.rates {
                for way in WAYS {
                    self.measure(&database, &mut run, round, way, *rate)?;
                }
            }
        }
        self.conclude(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    fn measure(
        &self,
        database: &Database,
        run: &mut Run,
        round: u32,
        way: Way,
        rate: u32,
    ) -> Result<()> {
        let gate = database.open(way, &self.windrow)?;
        let time = Duration::from_secs(self.seconds);
        let warm = self.offer(&gate, round, rate, Duration::from_secs(1), 50_000_000)?;
        let name = arm(way, rate);
        let report = say::during(&name, time, || self.offer(&gate, round, rate, time, 0))?;
        run.add_all(round, &name, &report.metrics());
        let (told, there) = (warm.successes() + report.successes(), gate.count()?);
        anyhow::ensure!(
            told == there && report.successes() == report.calls(),
            "{told} rows were confirmed, {there} are there: {:?}",
            report.told
        );
        Ok(())
    }

    fn offer(
        &self,
        gate: &Gate,
        round: u32,
        rate: u32,
        time: Duration,
        first: u64,
    ) -> Result<Report> {
        let load = Open {
            connections: self.clients,
            rate: rate.into(),
            time,
            seed: round.into(),
        };
        let job: Arc<dyn Job> = Arc::new(Inserts { first });
        open::run(gate.address(), &load, &job)
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        for rate in &self.rates {
            for metric in ["p50 ms", "p99 ms"] {
                let [direct, windrow] = WAYS.map(|way| run.median(&arm(way, *rate), metric));
                run.remark(format!(
                    "{rate} a second, {metric}: {:.3} direct, {:.3} through Windrow",
                    direct?, windrow?
                ));
            }
        }
        let line = |way: Way, metric: &str| Series {
            name: format!("{} {metric}", way.as_str()),
            points: self
                .rates
                .iter()
                .filter_map(|rate| {
                    let ms = run.median(&arm(way, *rate), metric).ok()?;
                    Some((as_f64((*rate).into()), ms))
                })
                .collect(),
        };
        let names = Names {
            title: "Latency at fixed rates",
            x: "writes a second",
            y: "ms",
        };
        let series = WAYS.map(|way| ["p50 ms", "p99 ms"].map(|metric| line(way, metric)));
        let svg = plot::lines(names, series.as_flattened())?;
        run.file("latency.svg", svg);
        Ok(())
    }
}
