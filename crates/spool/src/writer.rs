//! The thread that writes a partition: one sync for all that wait at that moment, and no timers.
//!
//! While a sync is under way, appends queue up; when it has ended, all that are queued are written
//! as one group and synced together. An append that meets an idle writer is synced at once.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::entry::{Batch, Position};
use crate::fault::SpoolFault;
use crate::format::{millis, time};
use crate::journal::Journal;
use crate::options::Options;
use crate::shelf::Shelf;
use crate::trim::Trimmer;

/// The lock on the spool's directory, released when its last owner is dropped.
pub(crate) type Guard = Arc<dyn Debug + Send + Sync>;

/// An append on its way.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) batch: Batch,
    pub(crate) reply: oneshot::Sender<Result<Position, SpoolFault>>,
}

/// The callers that wait for the group that is being written.
#[derive(Debug)]
struct Waiting {
    entries: u64,
    reserved: u64,
    reply: oneshot::Sender<Result<Position, SpoolFault>>,
}

/// The writer of a partition.
#[derive(Debug)]
pub(crate) struct Writer {
    journal: Journal,
    trimmer: Arc<Trimmer>,
    queue: mpsc::Receiver<Request>,
    batches: Vec<Batch>,
    waiting: Vec<Waiting>,
    /// Taken from the queue, and too large for the group that was gathered.
    carried: Option<Request>,
    ending: Ending,
}

/// Runs when the writer ends, however it ends: a caller that learns that the log is closed may open
/// the spool again.
#[derive(Debug)]
struct Ending {
    shelf: Arc<Shelf>,
    guard: Option<Guard>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.guard = None;
        self.shelf.close();
    }
}

impl Writer {
    pub(crate) fn new(
        journal: Journal,
        trimmer: Arc<Trimmer>,
        queue: mpsc::Receiver<Request>,
        guard: Guard,
    ) -> Self {
        let ending = Ending {
            shelf: Arc::clone(&journal.shelf),
            guard: Some(guard),
        };
        Self {
            journal,
            trimmer,
            queue,
            batches: Vec::new(),
            waiting: Vec::new(),
            carried: None,
            ending,
        }
    }

    /// Writes until nobody can append any more and all that was asked for has been answered.
    pub(crate) fn run(mut self) {
        while let Some(request) = self.next() {
            self.gather(request);
            self.commit();
        }
        self.journal.finish();
        drop(self.ending);
    }

    fn next(&mut self) -> Option<Request> {
        let carried = self.carried.take();
        carried.or_else(|| self.queue.blocking_recv())
    }

    /// Takes all that is queued, up to the size of a group.
    fn gather(&mut self, first: Request) {
        let most = self.journal.shelf.common.options.group_bytes;
        let (mut bytes, mut next) = (0, Some(first));
        while let Some(request) = next {
            let size = on_disk(&request.batch);
            if bytes > 0 && bytes + size > most {
                self.carried = Some(request);
                return;
            }
            if self.take(request, size as u64) {
                bytes += size;
            }
            next = self.queue.try_recv().ok();
        }
    }

    fn take(&mut self, request: Request, reserved: u64) -> bool {
        let Request { batch, reply } = request;
        // Nobody waits any more, so nothing needs to be written.
        if reply.is_closed() {
            return false;
        }
        if let Err(fault) = self.journal.shelf.common.reserve(reserved) {
            reply.send(Err(fault)).ok();
            return false;
        }
        self.waiting.push(Waiting {
            entries: batch.len() as u64,
            reserved,
            reply,
        });
        self.batches.push(batch);
        true
    }

    fn commit(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut done = self
            .check_age()
            .and_then(|()| self.journal.append(&self.batches));
        if matches!(done, Err(SpoolFault::DiskFull { .. })) && self.make_room() {
            done = self.journal.append(&self.batches);
        }
        let common = &self.journal.shelf.common;
        let reserved: u64 = self.waiting.iter().map(|waiting| waiting.reserved).sum();
        // What was written counts with its segment from now on.
        common.release(reserved);
        self.batches.clear();
        self.journal
            .writer
            .shrink(common.options.group_bytes.saturating_mul(2));
        let mut next = done;
        for waiting in self.waiting.drain(..) {
            // An error says that nobody waits any more.
            waiting.reply.send(next.clone()).ok();
            next = next.map(|position| position.plus(waiting.entries));
        }
    }

    /// The disk is full, and only whole segments are given back to it. Begins another one, so that
    /// the one before goes as soon as nothing in it is wanted. True if one has gone at once.
    fn make_room(&mut self) -> bool {
        if self.journal.begin_another().is_err() {
            return false;
        }
        let shelf = &self.journal.shelf;
        let segments = || shelf.stock().volumes.len();
        let (before, trimmed) = (segments(), shelf.stock().trimmed);
        self.trimmer.trim(shelf, trimmed).is_ok() && segments() < before
    }

    fn check_age(&self) -> Result<(), SpoolFault> {
        let shelf = &self.journal.shelf;
        let options = &shelf.common.options;
        let Some(limit) = options.max_age else {
            return Ok(());
        };
        let age = shelf
            .stock()
            .oldest
            .map(|oldest| age(options, oldest.written));
        match age {
            Some(age) if age > limit => Err(SpoolFault::AgeLimit { age, limit }),
            _ => Ok(()),
        }
    }
}

/// Returns the age of an entry; 0 if its time lies in the future.
pub(crate) fn age(options: &Options, written: u64) -> Duration {
    let now = time(millis(options.clock.now()));
    now.duration_since(time(written)).unwrap_or_default()
}

/// Bytes that an append takes on the disk at most.
pub(crate) fn on_disk(batch: &Batch) -> usize {
    Options::PER_GROUP + batch.bytes() + batch.len() * Options::PER_ENTRY
}
