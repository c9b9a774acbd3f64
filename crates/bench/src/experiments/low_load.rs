//! The cost of batching without anything to batch: a few requests a second, Windrow against Windrow
//! that sends each row alone on one of many connections.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::load::{check, latencies};
use crate::figures::Run;
use crate::http::open::{self, Open};
use crate::http::{Inserts, Job};
use crate::say;
use crate::servers::{self, Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct LowLoad {
    /// The database.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// Requests a second.
    #[arg(long, default_value_t = 500.0)]
    pub rate: f64,
    /// Connections that they come over.
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
}

const LANES: &str = "windrow";
const ALONE: &str = "windrow --batch-rows 1 --flights 16";

impl LowLoad {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a request fails.
    pub fn run(&self, root: &Path) -> Result<()> {
        let to = self.to.as_str();
        let mut run = Run::new(
            format!("low-load-{to}"),
            format!("{} requests a second into {to}", self.rate),
        );
        let store = Store::start(self.to)?;
        store.tell_version(&mut run)?;
        for round in 1..=self.rounds {
            self.measure(&store, &mut run, round, LANES, &[])?;
            let alone = ["--batch-rows", "1", "--flights", "16"];
            self.measure(&store, &mut run, round, ALONE, &alone)?;
        }
        for metric in ["p50 ms", "p99 ms"] {
            let (lanes, alone) = (run.median(LANES, metric)?, run.median(ALONE, metric)?);
            run.remark(format!(
                "{metric}: {lanes:.3} with lanes, {alone:.3} with each row in its own transaction: {:+.3}",
                lanes - alone
            ));
        }
        run.store(root)?;
        Ok(())
    }

    fn measure(
        &self,
        store: &Store,
        run: &mut Run,
        round: u32,
        arm: &str,
        arguments: &[&str],
    ) -> Result<()> {
        let table = store.table()?;
        let windrow = servers::windrow(&table.url(), arguments)?;
        let offer = |seconds, first| {
            let load = Open {
                connections: self.connections,
                rate: self.rate,
                time: Duration::from_secs(seconds),
                seed: u64::from(round),
            };
            let job: Arc<dyn Job> = Arc::new(Inserts::from(first));
            open::run(windrow.address(), &load, &job)
        };
        let warm = offer(1, 50_000_000)?;
        let time = Duration::from_secs(self.seconds);
        let report = say::during(arm, time, || offer(self.seconds, 0))?;
        run.add_all(round, arm, &latencies(&report));
        check(&report, &table, warm.successes())
    }
}
