//! Applies a spool to its database without a server.

use std::sync::Arc;

use anyhow::{Context, ensure};
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use windrow_core::Budget;

use super::check;
use super::databases::open;
use super::spool::{Around, Draining, SpoolWatch};
use crate::settings::{Place, Settings};

/// The result of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Entries that were applied, with those that were refused.
    pub applied: u64,
    /// Entries that the database refused: each is a dead letter.
    pub refused: u64,
    /// Entries that are not in the database.
    pub left: u64,
}

/// A spool that is being applied to its database.
pub struct DrainOnly {
    draining: Draining,
    watch: SpoolWatch,
}

impl DrainOnly {
    /// Opens the database and the spool, which must exist, and begins to apply it. Waits for the
    /// database if it is unreachable.
    ///
    /// # Errors
    /// Those of [`super::Server::bind`], and that there is no spool.
    pub async fn start(settings: &Settings) -> anyhow::Result<Self> {
        let spool = settings.spool.as_ref().context("no spool is named")?;
        if let Place::Directory(directory) = &spool.place {
            ensure!(
                directory.is_dir(),
                "there is no spool: the directory {} is not there",
                directory.display()
            );
        }
        let sink = open(settings).await?;
        check(&*sink, settings).await?;
        let around = Around {
            database: &Arc::clone(&sink),
            budget: &Budget::new(settings.memory),
            registry: &mut Registry::default(),
        };
        let draining = Draining::start(spool, around).await?;
        let watch = draining.watch();
        Ok(Self { draining, watch })
    }

    /// Describes the content of the spool at the start.
    pub async fn found(&self) -> String {
        self.watch.greeting().await
    }

    /// Applies the spool until all of it is applied or `stop` is cancelled. Then ends after the
    /// transaction under way. Dropping the future ends it at once.
    ///
    /// # Errors
    /// The reason why some of it was not applied, if trying again would not help.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<Drained> {
        let level = tokio::select! {
            level = self.watch.level() => level,
            () = stop.cancelled() => Ok(()),
        };
        let status = self.draining.stop().await;
        let mut drained = Drained::default();
        for partition in &status.partitions {
            drained.applied += partition.applied_entries;
            drained.refused += partition.rejected_entries;
            drained.left += partition.entries;
        }
        level.with_context(|| format!("{} entries are left in the spool", drained.left))?;
        Ok(drained)
    }
}
