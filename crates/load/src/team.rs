//! The workers of one file, and the channels between them and the reader.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use windrow_core::{Bulk, Holds, LoadPlan, Rows};

use super::bulk::BulkWriter;
use super::lane::Lane;
use super::parcel::Parcel;
use super::reader::ReadEnd;
use super::shared::Shared;
use super::worker::{FullPortions, Worker};
use super::{LoadError, Run};
use crate::source::{Portion, SourceFault};

/// The channels that carry portions from the reader to the workers and back.
pub(super) struct Channels {
    pub(super) full: FullPortions,
    pub(super) free: mpsc::Sender<Portion>,
    pub(super) reader: JoinHandle<Result<ReadEnd, SourceFault>>,
}

/// The workers of one file.
pub(super) struct Team<'a> {
    pub(super) run: &'a Run,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) plan: LoadPlan,
    pub(super) bulk: Option<Arc<dyn Bulk>>,
    pub(super) jobs: usize,
}

impl Team<'_> {
    /// Writes all portions. If `create` is given, the first portion creates the table. It lists the
    /// types that the file declares for its columns.
    pub(super) async fn work(
        &self,
        channels: &Channels,
        create: Option<&[Option<Holds>]>,
    ) -> Result<(), LoadError> {
        if let Some(declared) = create
            && let Some(mut parcel) = self.next(channels).await
        {
            parcel.portion.split();
            let made = self.make(&parcel.portion.rows, declared).await?;
            let mut worker = self.worker(made);
            worker.settle(&mut parcel).await?;
            channels.free.try_send(parcel.portion).ok();
        }
        let mut workers = JoinSet::new();
        for _ in 0..self.jobs {
            let worker = self.worker(true);
            workers.spawn(worker.run(Arc::clone(&channels.full), channels.free.clone()));
        }
        let mut outcome = Ok(());
        while let Some(ended) = workers.join_next().await {
            let ended = ended.unwrap_or_else(|_| {
                self.shared.halt.cancel();
                Err(LoadError::Defect("a task that writes rows has crashed"))
            });
            // The first fault is the cause. The other workers were stopped because of it.
            if outcome.is_ok() || matches!(outcome, Err(LoadError::Interrupted)) {
                outcome = ended.and(outcome);
            }
        }
        outcome
    }

    /// Creates the table or its missing columns if the bulk form can. Returns true if it did.
    async fn make(&self, rows: &Rows, declared: &[Option<Holds>]) -> Result<bool, LoadError> {
        let Some(bulk) = self.bulk.as_ref().filter(|_| !rows.is_empty()) else {
            return Ok(false);
        };
        let file = &self.shared.origin.file;
        self.run
            .ask(file, || bulk.make(&self.plan, rows, declared))
            .await
    }

    async fn next(&self, channels: &Channels) -> Option<Parcel> {
        let mut full = channels.full.lock().await;
        tokio::select! {
            biased;
            () = self.shared.halt.cancelled() => None,
            parcel = full.recv() => parcel,
        }
    }

    fn worker(&self, by_bulk: bool) -> Worker {
        let shared = || Arc::clone(self.shared);
        let bulk_writer =
            |bulk: &Arc<dyn Bulk>| BulkWriter::new(Arc::clone(bulk), self.plan.clone(), shared());
        Worker {
            bulk_writer: self.bulk.as_ref().filter(|_| by_bulk).map(bulk_writer),
            lane: Lane::new(&self.run.target.intake, &self.plan, shared()),
            shared: shared(),
        }
    }
}
