//! Good clients whose rows are remembered and that go on until the trouble is over.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::timeline::{self, Sample};
use crate::experiments::measure::Bed;
use crate::experiments::outcomes::{Remembered, Verified};
use crate::experiments::sampler::Sampler;
use crate::generator::{Clients, Live, Running, Schedule, Style, Until};
use crate::servers::Table;

/// A running load of single inserts.
pub(super) struct UnderLoad {
    pub(super) bed: Bed,
    /// The samples of the running load.
    pub(super) timeline: Sampler<Sample>,
    load: Running,
    remembered: Remembered,
}

/// The result of the load.
pub(super) struct Ended {
    /// The reported outcomes, compared with the table.
    pub(super) verified: Verified,
    /// The samples over time.
    pub(super) samples: Vec<Sample>,
    /// The keys that are in the table.
    pub(super) there: HashSet<u64>,
}

impl UnderLoad {
    /// Starts Windrow before a table and the load on it.
    ///
    /// # Errors
    /// Something cannot be started.
    pub(super) fn start(table: Table, clients: usize, options: &[&str]) -> Result<Self> {
        let bed = Bed::before(table, options)?;
        let remembered = Remembered::new(clients);
        let job = remembered.of(Style::Http, 0);
        let clients = Clients::open(&bed.target(), clients)?;
        let load = Running::start(clients, Schedule::Closed, Until::after(Duration::MAX), job);
        let timeline = timeline::watch(bed.windrow.pid(), Arc::clone(&load.live));
        Ok(Self {
            bed,
            timeline,
            load,
            remembered,
        })
    }

    /// Returns the counters of the running load.
    pub(super) fn live(&self) -> &Live {
        &self.load.live
    }

    /// Ends the load and looks at the table.
    ///
    /// # Errors
    /// A thread panicked, or the database is down.
    pub(super) fn end(self) -> Result<Ended> {
        self.load.stop()?;
        let samples = self.timeline.end()?;
        let there = self.bed.table.ids()?;
        Ok(Ended {
            verified: self.remembered.verify(&there),
            samples,
            there,
        })
    }
}
