//! The thread that writes a partition: one sync for all appends that wait at that moment, without
//! timers.
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

/// A requested append.
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
    /// A request that was taken from the queue and did not fit into the last group.
    carried: Option<Request>,
    ending: Ending,
}

/// Closes the log when the writer ends, in any way: a caller that learns of it may open the spool
/// again.
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

    /// Writes until no more appends can come and all have been answered.
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

    /// Takes all queued requests, up to the size of a group.
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
        // The client no longer waits, so the entries need not be written.
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
        // From now on the bytes count with their segment.
        common.release(reserved);
        self.batches.clear();
        self.journal
            .writer
            .shrink(common.options.group_bytes.saturating_mul(2));
        let mut next = done;
        for waiting in self.waiting.drain(..) {
            // An error means that the caller no longer waits.
            waiting.reply.send(next.clone()).ok();
            next = next.map(|position| position.plus(waiting.entries));
        }
    }

    /// Frees space on a full disk, which only whole segments give back. Begins another segment, so
    /// that the current one can be removed once all of its entries are trimmed. Returns true if a
    /// segment was removed at once.
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

/// Returns the age of an entry; 0 if its time is in the future.
pub(crate) fn age(options: &Options, written: u64) -> Duration {
    let now = time(millis(options.clock.now()));
    now.duration_since(time(written)).unwrap_or_default()
}

/// Returns the most bytes that an append takes on the disk.
pub(crate) fn on_disk(batch: &Batch) -> usize {
    Options::PER_GROUP + batch.bytes() + batch.len() * Options::PER_ENTRY
}
