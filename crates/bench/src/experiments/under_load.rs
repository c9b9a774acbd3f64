//! A load that goes on, watched and remembered, until it is told to end: what disturbances are
//! tried on.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use windrow_testkit::process::Windrow;

use super::outcomes::{Remembered, Verified};
use super::timeline::{self, Sample, Timeline};
use crate::figures::Run;
use crate::figures::plot::{self, Names};
use crate::http::closed::{self, Closed, Until};
use crate::http::{Live, Report};
use crate::servers::{self, Store, Table};

/// A running load of single inserts.
#[derive(Debug)]
pub struct UnderLoad {
    /// Windrow.
    pub windrow: Windrow,
    /// What is counted while it runs.
    pub live: Arc<Live>,
    /// What is sampled while it runs.
    pub timeline: Timeline,
    /// Told to end when this is true.
    pub stop: Arc<AtomicBool>,
    table: Table,
    job: Arc<Remembered>,
    clients: JoinHandle<Result<Report>>,
}

/// What it brought.
#[derive(Debug)]
pub struct Ended {
    /// What the clients were told, held against the table.
    pub verified: Verified,
    /// Rates and outcomes.
    pub report: Report,
    /// What happened when.
    pub samples: Vec<Sample>,
    /// The keys that are in the table.
    pub there: HashSet<u64>,
}

impl UnderLoad {
    /// Starts Windrow on a fresh table and the load on it.
    ///
    /// # Errors
    /// Something cannot be started.
    pub fn start(store: &Store, connections: usize, arguments: &[&str]) -> Result<Self> {
        let table = store.table()?;
        let windrow = servers::windrow(&table.url(), arguments)?;
        let stop = Arc::new(AtomicBool::new(false));
        let live = Arc::new(Live::default());
        let timeline = Timeline::start(windrow.pid(), Arc::clone(&live));
        let job = Arc::new(Remembered::new(connections));
        let load = Closed {
            connections,
            until: Until::Told(Arc::clone(&stop)),
        };
        let dynamic = Arc::clone(&job) as _;
        let clients = closed::start(windrow.address(), load, dynamic, Arc::clone(&live));
        Ok(Self {
            windrow,
            live,
            timeline,
            stop,
            table,
            job,
            clients,
        })
    }

    /// Ends the load; then runs `others`, for which Windrow must still be there, and looks at the
    /// table.
    ///
    /// # Errors
    /// A thread panicked, or the database is down.
    pub fn end<T>(self, others: impl FnOnce() -> Result<T>) -> Result<(Ended, T)> {
        self.stop.store(true, Ordering::SeqCst);
        let clients = self.clients.join();
        let report = clients.map_err(|_| anyhow!("the load panicked"))??;
        let other = others()?;
        let samples = self.timeline.end()?;
        let there = self.table.ids()?;
        let ended = Ended {
            verified: self.job.verify(&there),
            report,
            samples,
            there,
        };
        Ok((ended, other))
    }
}

impl Ended {
    /// Adds what there is to say and draw to a report.
    ///
    /// # Errors
    /// Nothing was sampled.
    pub fn tell(&self, run: &mut Run) -> Result<()> {
        let names = Names {
            title: "Single rows confirmed",
            x: "seconds",
            y: "rows a second",
        };
        let rate = plot::lines(names, &[timeline::rate(&self.samples)])?;
        run.file("rate.svg", rate);
        run.file("timeline.csv", timeline::csv(&self.samples));
        for (outcome, n) in &self.report.outcomes {
            run.remark(format!("{n} requests: {outcome:?}"));
        }
        Ok(())
    }
}
