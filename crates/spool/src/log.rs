//! A partition in files: the port's log.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use crate::cursor::FileCursor;
use crate::entry::{Batch, Position};
use crate::fault::SpoolFault;
use crate::journal::Journal;
use crate::options::Options;
use crate::port::{Cursor, Log, LogStatus};
use crate::shelf::Shelf;
use crate::trim::Trimmer;
use crate::writer::{Guard, Request, Writer, age};

/// A partition in files.
#[derive(Debug)]
pub(crate) struct FileLog {
    shelf: Arc<Shelf>,
    trimmer: Arc<Trimmer>,
    /// The open parts of the log; `None` once it was closed.
    open: Mutex<Option<Open>>,
}

/// The parts of a log until it is closed.
#[derive(Clone, Debug)]
struct Open {
    queue: mpsc::Sender<Request>,
    guard: Guard,
}

impl FileLog {
    /// Starts the writer.
    pub(crate) fn start(journal: Journal, guard: Guard) -> Result<Self, SpoolFault> {
        let shelf = Arc::clone(&journal.shelf);
        let (queue, requests) = mpsc::channel(shelf.common.options.queue);
        let trimmer = Arc::<Trimmer>::default();
        let writer = Writer::new(journal, Arc::clone(&trimmer), requests, Arc::clone(&guard));
        let name = format!("spool-{}", shelf.identity.partition);
        let thread = std::thread::Builder::new().name(name);
        thread
            .spawn(move || writer.run())
            .map_err(|e| SpoolFault::system("start a thread for", &shelf.directory, e))?;
        Ok(Self {
            shelf,
            trimmer,
            open: Mutex::new(Some(Open { queue, guard })),
        })
    }

    /// Accepts nothing more.
    pub(crate) fn shut(&self) {
        self.open.lock().take();
    }

    /// Waits until all appends are answered and the files are no longer used.
    pub(crate) async fn closed(&self) {
        let mut end = self.shelf.watch_end();
        // The shelf holds the sender, so it cannot be dropped.
        end.wait_for(|end| end.closed).await.ok();
        let trimmer = Arc::clone(&self.trimmer);
        spawn_blocking(move || trimmer.wait()).await.ok();
    }

    fn opened(&self) -> Result<Open, SpoolFault> {
        let open = self.open.lock();
        open.clone().ok_or(SpoolFault::Closed)
    }
}

#[async_trait]
impl Log for FileLog {
    fn partition(&self) -> u32 {
        self.shelf.identity.partition
    }

    async fn append(&self, batch: Batch) -> Result<Position, SpoolFault> {
        let common = &self.shelf.common;
        common.check()?;
        check_size(&batch, common.options.max_append)?;
        let queue = self.opened()?.queue;
        if batch.is_empty() {
            return Ok(self.end());
        }
        let (reply, answer) = oneshot::channel();
        let handed_over = queue.send(Request { batch, reply }).await;
        handed_over.map_err(|_| SpoolFault::Closed)?;
        // Dropped early: the writer ends when the last sender is gone.
        drop(queue);
        answer.await.unwrap_or_else(|_| {
            let why = "the thread that writes the spool has ended".into();
            Err(SpoolFault::Unknown { why })
        })
    }

    fn end(&self) -> Position {
        self.shelf.end().next
    }

    fn cursor(&self, from: Position) -> Result<Box<dyn Cursor>, SpoolFault> {
        Ok(Box::new(FileCursor::new(Arc::clone(&self.shelf), from)?))
    }

    async fn trim(&self, upto: Position) -> Result<(), SpoolFault> {
        let guard = self.opened()?.guard;
        let (shelf, trimmer) = (Arc::clone(&self.shelf), Arc::clone(&self.trimmer));
        let trimming = spawn_blocking(move || {
            let trimmed = trimmer.trim(&shelf, upto);
            drop(guard);
            trimmed
        });
        // An error means that the runtime is shutting down.
        trimming.await.map_err(|_| SpoolFault::Closed)?
    }

    fn refuse(&self, why: &str) {
        self.shelf.common.poison(&self.shelf.directory, why);
    }

    async fn status(&self) -> Result<LogStatus, SpoolFault> {
        let options = &self.shelf.common.options;
        let stock = self.shelf.stock();
        Ok(LogStatus {
            first: stock.trimmed,
            end: stock.next,
            bytes: stock.volumes.iter().map(|volume| volume.counted).sum(),
            age: stock.oldest.map(|oldest| age(options, oldest.written)),
        })
    }
}

fn check_size(batch: &Batch, limit: usize) -> Result<(), SpoolFault> {
    let bytes = batch.bytes() + batch.len() * Options::PER_ENTRY;
    if bytes <= limit {
        return Ok(());
    }
    Err(SpoolFault::TooLarge {
        bytes: batch.bytes(),
        entries: batch.len(),
        limit,
        per_entry: Options::PER_ENTRY,
    })
}
