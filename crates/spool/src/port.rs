//! The port: a spool of logs, each with its own order.
//!
//! Two implementations stand behind it: files on one machine ([`crate::FileSpool`]), which one
//! gateway works on, and a replicated log, which any number of gateways share.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::entry::{Batch, Entry, Position, SpoolId};
use crate::fault::SpoolFault;

/// A durable place for writes on their way to a database.
#[async_trait]
pub trait Spool: Debug + Send + Sync + 'static {
    /// Returns the name of the spool. A position that a database remembers belongs to this name.
    fn id(&self) -> SpoolId;

    /// The logs, in the order of their partitions. At least one, and as many as when it was made.
    fn logs(&self) -> &[Arc<dyn Log>];

    /// Why nothing is acknowledged any more, until the process ends: readiness says so.
    fn failure(&self) -> Option<Arc<str>>;

    /// Why nothing can be acknowledged at this moment, where that may pass by itself: readiness
    /// says so as well.
    fn away(&self) -> Option<Arc<str>> {
        None
    }

    /// Ends it: what was handed over is written and answered, anything later is refused. What is
    /// durable can still be read. Cancel safe: it ends all the same.
    ///
    /// # Errors
    /// [`SpoolFault::Poisoned`] if an append could not be made durable. Its caller has got the
    /// fault already.
    async fn close(&self) -> Result<(), SpoolFault>;
}

/// One partition: entries in one order, with positions that grow. In files they are numbered from 0
/// without a gap; a replicated log may leave numbers out, and others may append to it as well.
#[async_trait]
pub trait Log: Debug + Send + Sync + 'static {
    /// The partition.
    fn partition(&self) -> u32;

    /// Appends all entries of a batch, next to each other, all or none. Gives the position of the
    /// first, once all are durable. An empty batch gives the end of the log.
    ///
    /// Appends that are handed over one after the other stand in that order; of two that are under
    /// way at the same time, either may be the first. Waits while too many are queued.
    ///
    /// Cancel safe in this sense: a future that is dropped before its end has appended all of the
    /// batch or nothing, and nobody knows which.
    ///
    /// # Errors
    /// [`SpoolFault::Unknown`]: the entries may be in the log after the next start, or not.
    /// [`SpoolFault::Unsettled`]: they may be there at any moment, or not. All others say that
    /// nothing of the batch is there, or ever will be.
    async fn append(&self, batch: Batch) -> Result<Position, SpoolFault>;

    /// The position behind the last durable entry, as far as it is known here: what others have
    /// appended is known once it was read.
    fn end(&self) -> Position;

    /// Reads from a position on; the end of the log is one as well. Never blocks.
    ///
    /// # Errors
    /// [`SpoolFault::Trimmed`] and [`SpoolFault::Beyond`] where the position is not there. Both
    /// mean that who asks remembers another state than the log: nothing must be applied then.
    fn cursor(&self, from: Position) -> Result<Box<dyn Cursor>, SpoolFault>;

    /// Gives up all entries before a position; it may be asked for again and again. A promise to
    /// want them no longer, and no order: they may be there for a while, and can be read until
    /// they are gone, and after a restart they may count as not trimmed.
    /// Cancel safe: it is done all the same.
    ///
    /// # Errors
    /// [`SpoolFault::Beyond`]; [`SpoolFault::System`] where a file could not be removed, which the
    /// next call tries again.
    async fn trim(&self, upto: Position) -> Result<(), SpoolFault>;

    /// Takes nothing more from anybody, in no partition, until the process ends:
    /// [`Spool::failure`] says why. What is durable stays and can be read.
    fn refuse(&self, why: &str);

    /// Returns the positions and bytes that the log holds. Cancel safe.
    ///
    /// # Errors
    /// Where it cannot be found out.
    async fn status(&self) -> Result<LogStatus, SpoolFault>;
}

/// Reads a log in order and follows its end.
#[async_trait]
pub trait Cursor: Debug + Send {
    /// The position of the entry that comes next.
    fn position(&self) -> Position;

    /// The next entries: as many as have `most_bytes` of payload together, and at least one. Waits
    /// until there is one. Only durable entries are ever given, each checked against what was
    /// written.
    ///
    /// Cancel safe: a dropped future has moved nothing.
    ///
    /// # Errors
    /// Behind the last durable entry: [`SpoolFault::Closed`] or [`SpoolFault::Poisoned`], once
    /// nothing more can come. [`SpoolFault::Damaged`]: nothing behind that place is given, however
    /// often it is asked for. [`SpoolFault::Trimmed`]: others have applied and trimmed what comes
    /// next.
    async fn next(&mut self, most_bytes: usize) -> Result<Vec<Entry>, SpoolFault>;
}

/// The positions and bytes that a log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// The first position that is not trimmed.
    pub first: Position,
    /// The position behind the last durable entry.
    pub end: Position,
    /// Bytes that it takes, as far as they are known and count against the limit.
    pub bytes: u64,
    /// The age of the oldest entry that is not trimmed; `None` without entries, or if unknown.
    pub age: Option<Duration>,
}

impl LogStatus {
    /// Entries that are not trimmed; where positions have gaps, at most so many.
    pub fn entries(&self) -> u64 {
        self.end.since(self.first)
    }
}
