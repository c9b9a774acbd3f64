//! The log of a replica: in files of this gateway, or shared with others.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;
use windrow_core::{Fault, Write};
use windrow_spool::{Batch, Cursor, FileSpool, Log, Options, Position, Spool, SpoolFault};

use crate::entry::{self, Kind, Sign};

/// The bytes of a file of the log: entries applied since the last file began are applied again
/// after a start.
const SEGMENT: u64 = 4 << 20;

/// The approximate bytes of values in one entry.
const ENTRY: usize = 1 << 20;

/// The file whose existence says that a replica has got all rows that existed before it.
const COPIED: &str = "copied";

/// An open log.
#[derive(Debug)]
pub struct KeyLog {
    spool: Arc<dyn Spool>,
    pub(crate) log: Arc<dyn Log>,
    /// The gateway number in the entries of this process.
    pub(crate) gateway: u64,
    /// The file to create once all rows are copied; `None` if the log itself records that.
    copied: Option<PathBuf>,
    /// The approximate bytes of values in one entry.
    entry: usize,
    /// The position after the last entry of this process.
    end: AtomicU64,
    /// Locked while a message to other gateways is written, so that messages keep their order.
    telling: Mutex<()>,
}

impl KeyLog {
    /// Opens a log in files, or creates it, for this gateway alone. `max_bytes`: its limit.
    ///
    /// # Errors
    /// The files cannot be created or read, or are not a log's.
    pub async fn in_files(directory: &Path, max_bytes: u64) -> Result<Self, Fault> {
        make(directory)?;
        let gateway = rand::random();
        let options = Options {
            max_bytes,
            segment_bytes: SEGMENT,
            gateway: Some(gateway),
            ..Options::default()
        };
        let spool = FileSpool::open(directory.join("log"), options).await?;
        let own = Self::of(Arc::new(spool), gateway, ENTRY)?;
        let copied = Some(directory.join(COPIED));
        Ok(Self { copied, ..own })
    }

    /// Returns a log that other gateways append to as well. `options`: those with which it was
    /// opened; they name this gateway.
    ///
    /// # Errors
    /// It has more than one partition, or the options name no gateway.
    pub fn shared(spool: Arc<dyn Spool>, options: &Options) -> Result<Self, Fault> {
        let partitions = spool.logs().len();
        if partitions != 1 {
            return Err(Fault::invalid(format!(
                "it has {partitions} partitions; the log of a replica has one"
            )));
        }
        let unnamed = || Fault::internal("a log is opened under no number");
        let gateway = options.gateway.ok_or_else(unnamed)?;
        // Keys take a little more space in an entry than their values do.
        Self::of(spool, gateway, ENTRY.min(options.max_append / 2))
    }

    fn of(spool: Arc<dyn Spool>, gateway: u64, entry: usize) -> Result<Self, Fault> {
        let log = spool.logs().first().cloned();
        let log = log.ok_or_else(|| Fault::internal("the log of a replica has no partition"))?;
        Ok(Self {
            spool,
            log,
            gateway,
            copied: None,
            entry,
            end: AtomicU64::new(0),
            telling: Mutex::default(),
        })
    }

    /// True if no other gateway appends to the log.
    pub(crate) fn is_alone(&self) -> bool {
        self.copied.is_some()
    }

    /// Returns the first position that exists.
    pub(crate) async fn first(&self) -> Result<u64, SpoolFault> {
        Ok(self.log.status().await?.first.0)
    }

    /// Returns a cursor at a position, or at the first one that exists: entries that other gateways
    /// have removed were applied.
    pub(crate) fn cursor(&self, from: u64) -> Result<Box<dyn Cursor>, SpoolFault> {
        match self.log.cursor(Position(from)) {
            Err(SpoolFault::Trimmed { first, .. }) if !self.is_alone() => self.log.cursor(first),
            cursor => cursor,
        }
    }

    /// Returns the position after the last entry of this process.
    pub(crate) fn own_end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Appends keys, durably. Returns the number of entries.
    pub(crate) async fn append(
        &self,
        ticket: u64,
        kind: Kind,
        keys: &[Write],
    ) -> Result<usize, SpoolFault> {
        let batches = entry::batches((ticket, kind), keys, self.entry);
        let entries = batches.len();
        for batch in batches {
            self.put(batch).await?;
        }
        Ok(entries)
    }

    async fn put(&self, batch: Batch) -> Result<u64, SpoolFault> {
        let position = self.log.append(batch).await?.0;
        self.end.fetch_max(position + 1, Ordering::AcqRel);
        Ok(position)
    }

    /// Appends a sign of life for other gateways. Calls `sign` once it is its turn.
    pub(crate) async fn sign(&self, sign: impl FnOnce() -> Sign) -> Result<(), SpoolFault> {
        let turn = self.telling.lock().await;
        self.log.append(sign().batch()).await?;
        drop(turn);
        Ok(())
    }

    /// Declares another gateway lost, and returns the position of that entry. Calls `before` first:
    /// from then on no sign may say that the entries of that gateway are applied.
    pub(crate) async fn take_over(
        &self,
        gateway: u64,
        before: impl FnOnce(),
    ) -> Result<u64, SpoolFault> {
        let turn = self.telling.lock().await;
        before();
        let position = self.log.append(entry::lost(gateway)).await?.0;
        drop(turn);
        Ok(position)
    }

    /// True if a file says that the replica has all rows that existed before it.
    pub(crate) fn is_copied(&self) -> bool {
        self.copied.as_ref().is_some_and(|path| path.exists())
    }

    /// Creates that file, if the log is in files.
    pub(crate) fn note_copied(&self) -> Result<(), Fault> {
        let Some(path) = &self.copied else {
            return Ok(());
        };
        let written = std::fs::File::create(path).and_then(|file| file.sync_all());
        written.map_err(|error| {
            Fault::unavailable(format!("{} cannot be written: {error}", path.display()))
        })
    }

    /// Returns the reason why it accepts nothing before the next start.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.spool.failure()
    }

    /// Returns the reason why it accepts nothing at this moment.
    pub(crate) fn away(&self) -> Option<Arc<str>> {
        self.spool.away()
    }

    pub(crate) async fn close(&self) -> Result<(), SpoolFault> {
        self.spool.close().await
    }
}

/// Creates the directory of a log durably.
fn make(directory: &Path) -> Result<(), Fault> {
    let above = directory.parent().unwrap_or(directory);
    let made =
        std::fs::create_dir_all(directory).and_then(|()| std::fs::File::open(above)?.sync_all());
    made.map_err(|error| {
        let path = directory.display();
        Fault::unavailable(format!("the directory {path} cannot be made: {error}"))
    })
}
