//! The handle of a partition.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use windrow_spool::{Batch, Cursor, Log, LogStatus, Position, SpoolFault};

use crate::cluster::Line;
use crate::cursor::KafkaCursor;
use crate::failure::Failure;
use crate::record::{PER_BATCH, PER_RECORD};
use crate::state::{Bounds, Common};
use crate::writer::{APPEND_TIMEOUT, Request, Writer, size};

/// A partition.
pub(crate) struct KafkaLog {
    common: Arc<Common>,
    bounds: Arc<Bounds>,
    partition: u32,
    /// The queue of appends; `None` after the log was closed.
    queue: Mutex<Option<mpsc::Sender<Request>>>,
    writer: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl KafkaLog {
    /// Finds out where the partition begins and ends, and starts its writer.
    pub(crate) async fn start(common: Arc<Common>, partition: u32) -> Result<Self, Failure> {
        let number = i32::try_from(partition).unwrap_or(i32::MAX);
        let bounds = Arc::<Bounds>::default();
        let mut line = Line::new(Arc::clone(&common.cluster), number);
        let (first, end) = line.bounds().await?;
        bounds.note(first, end);
        let (queue, requests) = mpsc::channel(common.options.queue);
        let writer = Writer::new(Arc::clone(&common), Arc::clone(&bounds), number, requests);
        Ok(Self {
            common,
            bounds,
            partition,
            queue: Mutex::new(Some(queue)),
            writer: tokio::sync::Mutex::new(Some(tokio::spawn(writer.run()))),
        })
    }

    /// Returns the reason why nothing can be acknowledged at the moment.
    pub(crate) fn away(&self) -> Option<Arc<str>> {
        self.bounds.away()
    }

    /// Accepts nothing any more.
    pub(crate) fn shut(&self) {
        self.queue.lock().take();
    }

    /// Waits until all appends have been answered, which takes no longer than the timeout of an
    /// append.
    pub(crate) async fn closed(&self) {
        let mut writer = self.writer.lock().await;
        if let Some(task) = writer.as_mut() {
            // An error means that the runtime is ending.
            task.await.ok();
        }
        writer.take();
    }
}

#[async_trait]
impl Log for KafkaLog {
    fn partition(&self) -> u32 {
        self.partition
    }

    async fn append(&self, batch: Batch) -> Result<Position, SpoolFault> {
        self.common.check()?;
        let limit = self.common.batch - PER_BATCH;
        if size(&batch) > limit {
            return Err(SpoolFault::TooLarge {
                bytes: batch.bytes(),
                entries: batch.len(),
                limit,
                per_entry: PER_RECORD,
            });
        }
        if batch.is_empty() {
            return Ok(self.end());
        }
        // The writer notices when the brokers answer again. Until then an append fails at once.
        if let Some(why) = self.away() {
            return Err(SpoolFault::Unreached { why });
        }
        let queue = self.queue.lock().clone().ok_or(SpoolFault::Closed)?;
        let (reply, answer) = oneshot::channel();
        let request = Request {
            batch,
            deadline: Instant::now() + APPEND_TIMEOUT,
            reply,
        };
        queue.send(request).await.map_err(|_| SpoolFault::Closed)?;
        // Dropped early, because the writer ends when the last sender is gone.
        drop(queue);
        answer.await.unwrap_or_else(|_| {
            let why = "the task that writes the spool has ended".into();
            Err(SpoolFault::Unsettled { why })
        })
    }

    fn end(&self) -> Position {
        self.bounds.end()
    }

    fn cursor(&self, from: Position) -> Result<Box<dyn Cursor>, SpoolFault> {
        let (common, bounds) = (Arc::clone(&self.common), Arc::clone(&self.bounds));
        let cursor = KafkaCursor::new(common, bounds, self.partition, from)?;
        Ok(Box::new(cursor))
    }

    async fn trim(&self, upto: Position) -> Result<(), SpoolFault> {
        let end = self.end();
        if upto > end {
            return Err(SpoolFault::Beyond {
                partition: self.partition,
                asked: upto,
                end,
            });
        }
        if upto <= self.bounds.first() {
            return Ok(());
        }
        let number = i32::try_from(self.partition).unwrap_or(i32::MAX);
        let offset = i64::try_from(upto.0).unwrap_or(i64::MAX);
        let mut line = Line::new(Arc::clone(&self.common.cluster), number);
        let deleted = line.delete(offset).await;
        let first = deleted.map_err(|e| e.fault("what was applied cannot be deleted"))?;
        self.bounds.note(first, 0);
        Ok(())
    }

    fn refuse(&self, why: &str) {
        self.common.refuse(why);
    }

    async fn status(&self) -> Result<LogStatus, SpoolFault> {
        Ok(LogStatus {
            first: self.bounds.first(),
            end: self.bounds.end(),
            bytes: 0,
            age: None,
        })
    }
}

impl fmt::Debug for KafkaLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KafkaLog({})", self.partition)
    }
}
