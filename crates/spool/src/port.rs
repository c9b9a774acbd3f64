//! The port: a spool of logs, each with its own order.
//!
//! It has two implementations: files on one machine ([`crate::FileSpool`]), which one gateway uses,
//! and a replicated log, which any number of gateways share.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::entry::{Batch, Entry, Position, SpoolId};
use crate::fault::SpoolFault;

/// Durable storage for writes on their way to a database.
#[async_trait]
pub trait Spool: Debug + Send + Sync + 'static {
    /// Returns the name of the spool. A position that a database remembers belongs to this name.
    fn id(&self) -> SpoolId;

    /// Returns the logs, in the order of their partitions. There is at least one, and their number
    /// never changes.
    fn logs(&self) -> &[Arc<dyn Log>];

    /// Returns the reason why nothing is acknowledged until the process ends. Readiness reports it.
    fn failure(&self) -> Option<Arc<str>>;

    /// Returns the reason why nothing can be acknowledged at this moment, if that may pass by
    /// itself. Readiness reports it.
    fn away(&self) -> Option<Arc<str>> {
        None
    }

    /// Closes the spool: appends so far are written and answered, later ones are refused. Durable
    /// entries can still be read. Cancel safe: the spool is closed nevertheless.
    ///
    /// # Errors
    /// [`SpoolFault::Poisoned`] if an append could not be made durable. Its caller has got the
    /// fault already.
    async fn close(&self) -> Result<(), SpoolFault>;
}

/// One partition: entries in one order, with increasing positions. In files, positions start at 0
/// without gaps; a replicated log may have gaps, and others may append to it as well.
#[async_trait]
pub trait Log: Debug + Send + Sync + 'static {
    /// Returns the number of the partition.
    fn partition(&self) -> u32;

    /// Appends all entries of a batch, next to each other, or none. Returns the position of the
    /// first once all are durable; for an empty batch, the end of the log.
    ///
    /// Appends made one after the other stand in that order. Of two appends at the same time,
    /// either may come first. Waits while too many are queued.
    ///
    /// If the future is dropped before its end, either all of the batch is appended or nothing, and
    /// it is unknown which.
    ///
    /// # Errors
    /// [`SpoolFault::Unknown`]: the entries may be in the log after the next start, or not.
    /// [`SpoolFault::Unsettled`]: they may appear at any moment, or not. After all others, no entry
    /// of the batch is in the log, or ever will be.
    async fn append(&self, batch: Batch) -> Result<Position, SpoolFault>;

    /// Returns the position after the last durable entry known here. Entries that others have
    /// appended are known once they were read.
    fn end(&self) -> Position;

    /// Returns a reader that begins at a position, which may be the end of the log. Never blocks.
    ///
    /// # Errors
    /// [`SpoolFault::Trimmed`] and [`SpoolFault::Beyond`] if the position does not exist. Both mean
    /// that the caller remembers another state than the log's: it must not apply anything then.
    fn cursor(&self, from: Position) -> Result<Box<dyn Cursor>, SpoolFault>;

    /// Declares that entries before a position are no longer needed; may be called repeatedly. They
    /// may stay and be readable for a while, and may count as not trimmed after a restart. Cancel
    /// safe: they are trimmed nevertheless.
    ///
    /// # Errors
    /// [`SpoolFault::Beyond`]; [`SpoolFault::System`] if a file could not be removed, which the
    /// next call tries again.
    async fn trim(&self, upto: Position) -> Result<(), SpoolFault>;

    /// Lets all partitions refuse appends until the process ends; [`Spool::failure`] returns the
    /// reason. Durable entries stay and can be read.
    fn refuse(&self, why: &str);

    /// Returns the positions and bytes that the log holds. Cancel safe.
    ///
    /// # Errors
    /// They cannot be determined.
    async fn status(&self) -> Result<LogStatus, SpoolFault>;
}

/// Reads a log in order and follows its end.
#[async_trait]
pub trait Cursor: Debug + Send {
    /// Returns the position of the next entry.
    fn position(&self) -> Position;

    /// Returns the next entries: as many as have `most_bytes` of payload together, and at least
    /// one. Waits until there is one. Returns only durable entries, each checked against its
    /// checksum.
    ///
    /// Cancel safe: a dropped future has not moved the cursor.
    ///
    /// # Errors
    /// After the last durable entry: [`SpoolFault::Closed`] or [`SpoolFault::Poisoned`], once
    /// nothing more can come. [`SpoolFault::Damaged`]: nothing after that position is ever
    /// returned. [`SpoolFault::Trimmed`]: others have applied and trimmed the next entries.
    async fn next(&mut self, most_bytes: usize) -> Result<Vec<Entry>, SpoolFault>;
}

/// The positions and bytes that a log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// The first position that is not trimmed.
    pub first: Position,
    /// The position after the last durable entry.
    pub end: Position,
    /// The bytes that count against the limit, if they are known.
    pub bytes: u64,
    /// The age of the oldest entry that is not trimmed; `None` without entries, or if unknown.
    pub age: Option<Duration>,
}

impl LogStatus {
    /// Returns the number of entries that are not trimmed; an upper bound if positions have gaps.
    pub fn entries(&self) -> u64 {
        self.end.since(self.first)
    }
}
