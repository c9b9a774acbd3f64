//! A log, a database, and drains between them.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windrow_core::SpoolPlace;
use windrow_drain::{Drain, DrainMetrics, DrainState, Options, PartitionStatus, Progress};

use super::database::Fake;
use super::log::FakeLog;
use super::tables::{Kind, Tables, entry};

/// SplitMix64: chance that can be repeated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below another one; 0 for 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or_default()
    }
}

/// A log and a database.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) log: FakeLog,
    pub(crate) database: Fake,
}

/// A drain that runs.
pub(crate) struct Running {
    pub(crate) progress: Progress,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
    pub(crate) registry: Registry,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            log: FakeLog::new(),
            database: Fake::default(),
        }
    }

    /// Entries of one write each.
    pub(crate) fn of(kinds: &[Kind]) -> Self {
        let world = Self::new();
        for (number, kind) in kinds.iter().enumerate() {
            world.log.push(entry(number, &[*kind]));
        }
        world
    }

    pub(crate) fn drain(&self, options: Options) -> (Drain, Registry) {
        let mut registry = Registry::default();
        let metrics = DrainMetrics::register(&mut registry);
        let database = Arc::new(self.database.clone());
        let drain = Drain::new(&self.log, database, options, &metrics);
        (drain.map_err(|fault| fault.to_string()).unwrap(), registry)
    }

    pub(crate) fn start(&self) -> Running {
        self.start_with(Options::default())
    }

    pub(crate) fn start_with(&self, options: Options) -> Running {
        let (drain, registry) = self.drain(options);
        let stop = CancellationToken::new();
        Running {
            progress: drain.progress(),
            task: tokio::spawn(drain.run(stop.clone())),
            stop,
            registry,
        }
    }

    pub(crate) fn tables(&self) -> Tables {
        self.database.state().tables.clone()
    }

    /// The numbers of the entries whose writes are there, in the order of their writes.
    pub(crate) fn written(&self) -> Vec<i64> {
        self.tables().rows.iter().map(|(entry, _)| *entry).collect()
    }
}

impl Running {
    pub(crate) fn end(&self) -> SpoolPlace {
        self.progress.end()
    }

    /// Waits until all that is there is applied.
    pub(crate) async fn all_applied(&self) {
        self.progress.applied(&self.end()).await.unwrap();
    }

    pub(crate) async fn status(&self) -> PartitionStatus {
        self.progress.status().await.partitions.remove(0)
    }

    /// Waits until it is in a state.
    pub(crate) async fn until(&self, holds: impl Fn(&DrainState) -> bool) -> PartitionStatus {
        loop {
            let status = self.status().await;
            if holds(&status.state) {
                return status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}
