//! Connects the spool to the other parts: to the frontends, whose writes it takes, and to the
//! database that it is applied to.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::FutureExt;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use windrow_core::{Bookkeeping, Budget, Database, Fault, FaultClass, Intake, Permit, Spooling};
use windrow_drain::{
    Drain, DrainMetrics, DrainState, DrainStatus, Handle, PartitionStatus, Progress,
};
use windrow_spool::{Appender, Options, Spool};

use super::opened::Opened;
use crate::bookkeeping::beside;
use crate::lanes::LANE_CAPACITY;
use crate::settings::{Place, SpoolSettings};

/// Parts of the process that a spool needs.
pub(super) struct Around<'a> {
    pub(super) database: &'a Arc<dyn Database>,
    pub(super) budget: &'a Budget,
    pub(super) registry: &'a mut Registry,
}

/// A spool that accepts writes and is being applied.
pub(super) struct RunningSpool {
    draining: Draining,
    handle: Arc<Handle>,
    /// Cancelled when waiting for the spool to be applied must end.
    ending: CancellationToken,
    appending: (CancellationToken, JoinHandle<()>),
}

impl RunningSpool {
    /// Starts the configured spool; `None` if none is configured.
    pub(super) async fn asked_for(
        settings: Option<&SpoolSettings>,
        around: Around<'_>,
    ) -> anyhow::Result<Option<Self>> {
        match settings {
            Some(settings) => Self::start(settings, around).await.map(Some),
            None => Ok(None),
        }
    }

    /// Opens a spool, or creates one, and starts to fill and apply it.
    async fn start(settings: &SpoolSettings, around: Around<'_>) -> anyhow::Result<Self> {
        let budget = around.budget.clone();
        let draining = Draining::start(settings, around).await?;
        let (intake, arrivals) = Intake::channel(budget, LANE_CAPACITY);
        let stop = CancellationToken::new();
        // There is one partition for now.
        let log = draining.spool.logs().first();
        let log = Arc::clone(log.context("the spool has no partition")?);
        let appender = Appender::new(arrivals, log, &draining.options);
        let task = tokio::spawn(appender.run(stop.clone()));
        let ending = CancellationToken::new();
        let handle = Handle::new(intake, draining.progress.clone(), ending.clone());
        Ok(Self {
            handle: Arc::new(handle.repeating(draining.repeats)),
            ending,
            appending: (stop, task),
            draining,
        })
    }

    /// Returns the port for the frontends' writes.
    pub(super) fn spooling(&self) -> Arc<dyn Spooling> {
        Arc::clone(&self.handle) as Arc<dyn Spooling>
    }

    /// Returns a handle that watches the spool.
    pub(super) fn watch(&self) -> SpoolWatch {
        self.draining.watch()
    }

    /// Returns the tables that hold the spool's dead letters.
    pub(super) fn books(&self) -> Option<Arc<dyn Bookkeeping>> {
        self.draining.books.clone()
    }

    /// Returns a token that ends all waiting for the spool to be applied.
    pub(super) fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }

    /// Makes all accepted writes durable. The next start applies those that the database does not
    /// have yet; returns their number.
    pub(super) async fn stop(self) -> u64 {
        let (stop, mut task) = self.appending;
        stop.cancel();
        ended("appending to the spool", &mut task).await;
        let status = self.draining.stop().await;
        status.partitions.iter().map(|part| part.entries).sum()
    }
}

/// A spool that is being applied.
pub(super) struct Draining {
    spool: Arc<dyn Spool>,
    /// The spool's options that are in effect.
    options: Options,
    cut: u64,
    /// True if entries may be applied more than once.
    repeats: bool,
    progress: Progress,
    stop: CancellationToken,
    task: JoinHandle<()>,
    /// Windrow's own tables, which hold the dead letters.
    books: Option<Arc<dyn Bookkeeping>>,
    /// The memory for entries under way.
    _memory: Permit,
}

impl Draining {
    /// Opens a spool, or creates one, and begins to apply it.
    pub(super) async fn start(
        settings: &SpoolSettings,
        around: Around<'_>,
    ) -> anyhow::Result<Self> {
        let books = books(&**around.database, &settings.place)?;
        let memory = around.budget.try_take(settings.memory())?;
        let Opened {
            spool,
            options,
            cut,
        } = Opened::open(settings).await?;
        let metrics = DrainMetrics::register(around.registry);
        let database = match books {
            Some(directory) => beside(around.database, directory, true).await?,
            None => Arc::clone(around.database),
        };
        let tables = database.bookkeeping();
        let drain = Drain::new(&*spool, database, settings.drain(), &metrics)?;
        let (progress, stop) = (drain.progress(), CancellationToken::new());
        let task = tokio::spawn(drain.run(stop.clone()));
        Ok(Self {
            spool,
            options,
            cut,
            repeats: books.is_some(),
            progress,
            stop,
            task,
            books: tables,
            _memory: memory,
        })
    }

    /// Returns a handle that watches the spool.
    pub(super) fn watch(&self) -> SpoolWatch {
        SpoolWatch {
            spool: Arc::clone(&self.spool),
            cut: self.cut,
            progress: self.progress.clone(),
        }
    }

    /// Ends after the transaction under way, and returns the progress. The wait for a database that
    /// does not answer is short: the next start finds out the outcome of that transaction.
    pub(super) async fn stop(mut self) -> DrainStatus {
        self.stop.cancel();
        let ending = ended("applying the spool", &mut self.task);
        if tokio::time::timeout(LAST_TRANSACTION, ending)
            .await
            .is_err()
        {
            warn!(
                "the database does not answer; what became of the last transaction is found out at the next start"
            );
            self.task.abort();
        }
        let status = self.progress.status().await;
        if let Err(fault) = self.spool.close().await {
            warn!(%fault, "the spool did not close well");
        }
        status
    }
}

/// The longest time that the end waits for the transaction under way.
const LAST_TRANSACTION: Duration = Duration::from_secs(5);

/// Waits for a task.
async fn ended(what: &str, task: &mut JoinHandle<()>) {
    if let Err(error) = task.await {
        tracing::error!(%error, "{what} has ended badly");
    }
}

/// Returns Windrow's own tables in the spool's directory, for a database without transactions.
/// `None` if the database has them itself.
///
/// A topic is refused, because nothing would prevent that two gateways apply it at once, and that a
/// late one overwrites what the other has written.
pub(super) fn books<'p>(
    database: &dyn Database,
    place: &'p Place,
) -> anyhow::Result<Option<&'p Path>> {
    if database.bookkeeping().is_some() {
        return Ok(None);
    }
    let name = database.profile().name;
    match place {
        Place::Directory(directory) => Ok(Some(directory)),
        Place::Topic { .. } => anyhow::bail!(
            "a topic cannot be applied to {name}, which has no transactions: name a directory with --spool DIR, which one gateway has for itself"
        ),
    }
}

/// The state of a spool. Cheap to clone.
#[derive(Clone)]
pub(super) struct SpoolWatch {
    spool: Arc<dyn Spool>,
    cut: u64,
    progress: Progress,
}

impl SpoolWatch {
    /// Checks that the spool accepts writes and applies them to the database, now or once the
    /// database answers again.
    ///
    /// # Errors
    /// The reason why it does not before the next start.
    pub(super) fn healthy(&self) -> Result<(), Fault> {
        if let Some(why) = self.spool.failure() {
            let message = format!("the spool takes nothing more before the next start: {why}");
            return Err(Fault::new(FaultClass::Unavailable, "58030", message));
        }
        if let Some(why) = self.spool.away() {
            let message = format!("the spool takes nothing at this moment: {why}");
            return Err(Fault::new(FaultClass::Unavailable, "58030", message));
        }
        if let Some(why) = self.progress.stopped() {
            let message = format!("the spool is not applied before the next start: {why}");
            return Err(Fault::new(FaultClass::Unavailable, "58030", message));
        }
        Ok(())
    }

    /// Waits until the database has all entries that exist now.
    pub(super) async fn level(&self) -> Result<(), Fault> {
        self.progress.applied(&self.progress.end()).await
    }

    /// Describes the content of the spool at the start.
    pub(super) async fn greeting(&self) -> String {
        let status = self.progress.status().await;
        let entries: u64 = status.partitions.iter().map(|part| part.entries).sum();
        let cut = self.cut;
        // The number of those that the database has already is not known yet.
        let mut text = match entries {
            0 => "empty".to_owned(),
            1 => "1 entry kept".to_owned(),
            _ => format!("{entries} entries kept"),
        };
        if entries > 0 {
            text.push_str("; what the database lacks of that is applied");
        }
        if cut > 0 {
            text.push_str(&format!(
                "; {cut} bytes that a crash had left unfinished were cut off"
            ));
        }
        text
    }

    /// Returns the state of the spool, as `GET /v1/lanes` shows it.
    pub(super) fn json(&self) -> Value {
        // The future is ready at once if the spool is in files.
        let Some(status) = self.progress.status().now_or_never() else {
            return Value::Null;
        };
        let partitions = status.partitions.iter().map(partition_json);
        json!({
            "id": status.spool.to_string(),
            "failed": self.spool.failure().as_deref(),
            "away": self.spool.away().as_deref(),
            "partitions": partitions.collect::<Vec<_>>(),
        })
    }
}

fn partition_json(partition: &PartitionStatus) -> Value {
    let since = match &partition.state {
        DrainState::Waiting { since, .. } => Some(since.as_secs_f64()),
        _ => None,
    };
    json!({
        "partition": partition.partition,
        "state": partition.state.as_str(),
        "why": partition.state.why(),
        "waiting_seconds": since,
        "applied": partition.applied,
        "end": partition.end,
        "entries": partition.entries,
        "bytes": partition.bytes,
        "oldest_seconds": partition.age.map(|age| age.as_secs_f64()),
        "totals": {
            "applied": partition.applied_entries,
            "rejected": partition.rejected_entries,
        },
    })
}
