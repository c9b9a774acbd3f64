//! The state that the partitions of a spool share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;
use windrow_spool::{Options, Position, SpoolFault};

use crate::cluster::Cluster;

/// The state that the partitions of a spool share.
pub(crate) struct Common {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) options: Options,
    /// The number of this gateway, random unless configured.
    pub(crate) gateway: u64,
    /// The number of replicas that must have an entry when it is acknowledged.
    pub(crate) in_sync: usize,
    /// The most bytes of a batch.
    pub(crate) batch: usize,
    refused: watch::Sender<Option<Arc<str>>>,
    closed: watch::Sender<bool>,
}

impl Common {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        options: Options,
        (in_sync, batch): (usize, usize),
    ) -> Self {
        Self {
            cluster,
            gateway: options.gateway.unwrap_or_else(rand::random),
            options,
            in_sync,
            batch,
            refused: watch::Sender::new(None),
            closed: watch::Sender::new(false),
        }
    }

    /// Accepts nothing any more. Only the first reason is kept.
    pub(crate) fn refuse(&self, why: &str) {
        let first = self.refused.send_if_modified(|refused| {
            let first = refused.is_none();
            refused.get_or_insert_with(|| why.into());
            first
        });
        if first {
            tracing::error!(%why, "the spool takes nothing more");
        }
    }

    /// Returns the reason why nothing is accepted any more.
    pub(crate) fn refused(&self) -> Option<Arc<str>> {
        self.refused.borrow().clone()
    }

    pub(crate) fn check(&self) -> Result<(), SpoolFault> {
        match self.refused() {
            Some(why) => Err(SpoolFault::Poisoned { why }),
            None => Ok(()),
        }
    }

    /// Stops all readers.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Waits until it is closed. Cancel safe.
    pub(crate) async fn closed(&self) {
        // The sender still exists: it is in the same struct.
        self.closed
            .subscribe()
            .wait_for(|closed| *closed)
            .await
            .ok();
    }
}

/// The known positions of a partition.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    first: AtomicU64,
    end: AtomicU64,
    /// The reason why nothing can be acknowledged at the moment.
    away: watch::Sender<Option<Arc<str>>>,
}

impl Bounds {
    /// Notes both positions. They never decrease, even if an older answer arrives late.
    pub(crate) fn note(&self, first: i64, end: i64) {
        let first = u64::try_from(first).unwrap_or_default();
        let end = u64::try_from(end).unwrap_or_default();
        self.first.fetch_max(first, Ordering::Relaxed);
        self.end.fetch_max(end, Ordering::Release);
    }

    pub(crate) fn first(&self) -> Position {
        Position(self.first.load(Ordering::Relaxed))
    }

    pub(crate) fn end(&self) -> Position {
        Position(self.end.load(Ordering::Acquire))
    }

    pub(crate) fn away(&self) -> Option<Arc<str>> {
        self.away.borrow().clone()
    }

    /// Sets whether entries can be acknowledged.
    pub(crate) fn set_away(&self, why: Option<Arc<str>>) {
        let before = self.away.send_replace(why.clone());
        match (before, why) {
            (None, Some(why)) => tracing::error!(%why, "the spool cannot take anything"),
            (Some(_), None) => tracing::warn!("the spool takes writes again"),
            _ => {}
        }
    }
}
