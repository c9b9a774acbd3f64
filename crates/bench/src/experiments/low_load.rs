//! The cost of batching without anything to batch: a few requests a second, Windrow against Windrow
//! that sends each row alone on one of many connections.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::measure::{Bed, Offer};
use crate::figures::Run;
use crate::generator::{Inserts, Schedule, Style};
use crate::servers::{Kind, Store};

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
        store.report_version(&mut run)?;
        run.rounds(self.rounds, &[LANES, ALONE], |run, round, arm| {
            self.measure(&store, run, round, arm)
        })?;
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

    fn measure(&self, store: &Store, run: &mut Run, round: u32, arm: &str) -> Result<()> {
        // What stands behind the program's name are its options.
        let options: Vec<&str> = arm.split(' ').skip(1).collect();
        let bed = Bed::start(store, &options)?;
        let time = Duration::from_secs(self.seconds);
        let offer = Offer {
            schedule: Schedule::Poisson {
                rate: self.rate,
                seed: round.into(),
            },
            ..Offer::closed(arm, self.connections, time)
        };
        let job = |first| Arc::new(Inserts::from(Style::Http, first)) as _;
        let measured = offer.measure(&bed.target(), |meter| meter, job)?;
        run.add_all(round, arm, &measured.metrics);
        measured.check(&bed.table)
    }
}
