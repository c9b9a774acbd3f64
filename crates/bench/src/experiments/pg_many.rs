//! Very many connected clients of which some write: memory of the gateway, connections of the
//! server, rate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::figures::Run;
use crate::figures::plot::{self, Names, Series};
use crate::http::report::as_f64;
use crate::pg::closed::Clients;
use crate::pg::{Inserts, Job};
use crate::say;
use crate::servers::pg::{Database, Way};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct PgMany {
    /// Clients that are connected.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    pub connected: Vec<usize>,
    /// How many of them write, each with one insert under way.
    #[arg(long, default_value_t = 1_000)]
    pub writing: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

impl PgMany {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a write fails.
    pub fn run(&self, root: &Path) -> Result<()> {
        let title = format!("Many connected clients, {} of them write", self.writing);
        let mut run = Run::new("pg-many", title);
        let database = Database::start(Duration::ZERO)?;
        database.tell_versions(&mut run, &[Way::Windrow])?;
        for round in 1..=self.rounds {
            for connected in &self.connected {
                self.measure(&database, &mut run, round, *connected)?;
            }
        }
        self.conclude(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    fn arm(&self, connected: usize) -> String {
        format!(
            "{connected} connected, {} write",
            self.writing.min(connected)
        )
    }

    fn measure(
        &self,
        database: &Database,
        run: &mut Run,
        round: u32,
        connected: usize,
    ) -> Result<()> {
        let gate = database.open(Way::Windrow, &self.windrow)?;
        let resident = || {
            let mib = gate.resident_mib()?;
            mib.context("windrow is a process")
        };
        let empty = resident()?.0;
        let mut clients = Clients::open(gate.address(), connected)?;
        let opened = resident()?.0;
        let busy = self.writing.min(connected);
        let job: Arc<dyn Job> = Arc::new(Inserts::default());
        clients.prepare(busy, &*job)?;
        let time = Duration::from_secs(self.seconds);
        let arm = self.arm(connected);
        let report = say::during(&arm, time, || clients.run(busy, time, &job))?;
        let (after, peak) = resident()?;
        let mut metrics = report.metrics();
        metrics.extend([
            ("server connections", as_f64(gate.connections()?)),
            ("RSS MiB before", empty),
            ("RSS MiB connected", opened),
            ("RSS MiB after", after),
            ("RSS MiB peak", peak),
            (
                "KiB a silent client",
                (opened - empty) * 1024.0 / as_f64(connected as u64),
            ),
        ]);
        run.add_all(round, &arm, &metrics);
        let (told, there) = (report.successes(), gate.count()?);
        anyhow::ensure!(
            told == there && told == report.calls(),
            "{told} rows were confirmed, {there} are there: {:?}",
            report.told
        );
        Ok(())
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        let line = |name: &str, metric: &str| Series {
            name: name.into(),
            points: self
                .connected
                .iter()
                .filter_map(|connected| {
                    let mib = run.median(&self.arm(*connected), metric).ok()?;
                    Some((as_f64(*connected as u64), mib))
                })
                .collect(),
        };
        let series = [
            line("silent", "RSS MiB connected"),
            line("highest while writing", "RSS MiB peak"),
        ];
        let names = Names {
            title: "Memory of Windrow",
            x: "connected clients",
            y: "MiB",
        };
        let svg = plot::lines(names, &series)?;
        run.file("memory.svg", svg);
        Ok(())
    }
}
