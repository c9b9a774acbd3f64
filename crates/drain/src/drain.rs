//! Runs a task for each partition.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windrow_core::{Bookkeeping, Database, Fault, FaultClass};
use windrow_spool::Spool;

use crate::metrics::DrainMetrics;
use crate::options::Options;
use crate::partition::Partition;
use crate::progress::Progress;
use crate::trimmer;
use crate::worker::Worker;

/// The interval at which metrics that depend on the time are updated.
const LOOK: Duration = Duration::from_secs(1);

/// Applies a spool to a database.
pub struct Drain {
    database: Arc<dyn Database>,
    bookkeeping: Arc<dyn Bookkeeping>,
    options: Options,
    progress: Progress,
}

impl Drain {
    /// Returns a drain that has not begun yet.
    ///
    /// # Errors
    /// [`FaultClass::Unsupported`] if the database cannot keep the progress of a spool: see
    /// [`crate::Beside`].
    pub fn new(
        spool: &dyn Spool,
        database: Arc<dyn Database>,
        options: Options,
        metrics: &DrainMetrics,
    ) -> Result<Self, Fault> {
        let Some(bookkeeping) = database.bookkeeping() else {
            let name = database.profile().name;
            let message = format!(
                "no spool can be applied to {name} by itself: it has no transactions over several \
                 tables"
            );
            return Err(Fault::new(FaultClass::Unsupported, "0A000", message));
        };
        let logs = spool.logs().iter();
        let partitions = logs.map(|log| {
            let meters = metrics.partition(log.partition());
            Arc::new(Partition::new(Arc::clone(log), meters))
        });
        Ok(Self {
            progress: Progress::new(spool.id(), partitions.collect()),
            database,
            bookkeeping,
            options,
        })
    }

    /// Returns the drain's progress, which outlives the drain.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Returns the most bytes of memory that the drain takes, unless an entry is larger than
    /// [`Options::memory`]. To be taken from the budget once, for as long as it runs.
    pub fn memory(&self) -> usize {
        let partitions = self.progress.partitions().len();
        self.options.memory.saturating_mul(partitions)
    }

    /// Applies the entries in the spool and those that are appended, until `stop` is cancelled, and
    /// ends after the transaction under way.
    ///
    /// A dropped future ends at once. The next start finds out what was under way: no entry is lost
    /// or applied twice.
    pub async fn run(self, stop: CancellationToken) {
        let ending = EndNotice(self.progress.clone());
        let mut tasks = JoinSet::new();
        for partition in self.progress.partitions() {
            let partition = Arc::clone(partition);
            let worker = Worker::new(
                self.progress.spool(),
                Arc::clone(&partition),
                (Arc::clone(&self.database), Arc::clone(&self.bookkeeping)),
                self.options.clone(),
                stop.clone(),
            );
            let keep = self.options.keep;
            tasks.spawn(async move {
                // Dropped with the task, so that no request waits for a worker that has panicked.
                let left = LeaveNotice(Arc::clone(&partition));
                tokio::select! {
                    () = worker.run() => {}
                    () = trimmer::run(&partition, keep) => {}
                }
                drop(left);
            });
        }
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                ended = tasks.join_next() => match ended {
                    Some(_) => {}
                    None => break,
                },
                _ = look.tick() => measure(&self.progress).await,
            }
        }
        measure(&self.progress).await;
        drop(ending);
    }
}

/// Updates the gauges.
async fn measure(progress: &Progress) {
    for partition in progress.partitions() {
        let status = partition.status().await;
        partition.meters.measure(&status);
    }
}

/// Reports to those who wait that nothing is applied any more, however the drain ends.
struct EndNotice(Progress);

impl Drop for EndNotice {
    fn drop(&mut self) {
        for partition in self.0.partitions() {
            partition.end("Windrow is shutting down".into());
        }
    }
}

/// Reports the same for one partition.
struct LeaveNotice(Arc<Partition>);

impl Drop for LeaveNotice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop("a defect in Windrow; its log says more");
        }
        self.0.end("Windrow is shutting down".into());
    }
}
