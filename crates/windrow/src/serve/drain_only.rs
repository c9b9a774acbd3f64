//! A spool brought into its database without a server.

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
    /// Entries that the database has not got.
    pub left: u64,
}

/// A spool that is being brought into its database.
pub struct DrainOnly {
    draining: Draining,
    watch: SpoolWatch,
}

impl DrainOnly {
    /// Opens the database and the spool, which must be there, and begins to apply it. The database
    /// may be away: it is waited for.
    ///
    /// # Errors
    /// Those of [`super::Server::bind`], and where there is no spool.
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

    /// Says what was found in the spool.
    pub async fn found(&self) -> String {
        self.watch.greeting().await
    }

    /// Applies what is there, until all of it is applied or `stop` is cancelled; ends behind the
    /// transaction under way. To end at once, drop the future.
    ///
    /// # Errors
    /// Why some of it is not applied, where trying again would not help.
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
