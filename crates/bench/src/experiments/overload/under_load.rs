//! Good clients whose rows are remembered and that go on until the trouble is over.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use windrow_testkit::process::Windrow;

use super::super::outcomes::{Remembered, Verified};
use super::timeline::{Sample, Timeline};
use crate::http::closed::{self, Closed, Until};
use crate::http::{Live, Report};
use crate::servers::{self, Table};

/// A running load of single inserts.
#[derive(Debug)]
pub struct UnderLoad {
    /// Windrow.
    pub windrow: Windrow,
    /// The counters of the running load.
    pub live: Arc<Live>,
    /// The samples of the running load.
    pub timeline: Timeline,
    /// The table they write to.
    pub table: Table,
    stop: Arc<AtomicBool>,
    job: Arc<Remembered>,
    clients: JoinHandle<Result<Report>>,
}

/// The result of the load.
#[derive(Debug)]
pub struct Ended {
    /// The reported outcomes, compared with the table.
    pub verified: Verified,
    /// Rates and outcomes.
    pub report: Report,
    /// The samples over time.
    pub samples: Vec<Sample>,
    /// The keys that are in the table.
    pub there: HashSet<u64>,
}

impl UnderLoad {
    /// Starts Windrow before a table and the load on it.
    ///
    /// # Errors
    /// Something cannot be started.
    pub fn start(table: Table, connections: usize, arguments: &[&str]) -> Result<Self> {
        let windrow = servers::windrow(&table.url(), arguments)?;
        let stop = Arc::new(AtomicBool::new(false));
        let live = Arc::new(Live::default());
        let timeline = Timeline::start(windrow.pid(), Arc::clone(&live));
        let job = Arc::new(Remembered::new(connections));
        let load = Closed {
            connections,
            until: Until::Stopped(Arc::clone(&stop)),
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

    /// Ends the load and looks at the table.
    ///
    /// # Errors
    /// A thread panicked, or the database is down.
    pub fn end(self) -> Result<Ended> {
        self.stop.store(true, Ordering::SeqCst);
        let clients = self.clients.join();
        let report = clients.map_err(|_| anyhow!("the load panicked"))??;
        let samples = self.timeline.end()?;
        let there = self.table.ids()?;
        Ok(Ended {
            verified: self.job.verify(&there),
            report,
            samples,
            there,
        })
    }
}
