//! A replica: its database, its log, and what its tables are called.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use tokio::sync::watch;
use windrow_core::{Database, Fault, FaultClass, RowWrite};
use windrow_spool::{FileSpool, Log, Options, Spool};

use crate::entry::{self, Kind};
use crate::metrics::Meters;
use crate::status::{ReplicaState, ReplicaStatus};
use crate::target::{Names, Target};
use crate::tickets::Tickets;

/// Bytes of a file of the log: what was applied since the last file began is applied once more
/// after a start.
const SEGMENT: u64 = 4 << 20;

/// The file that says that a replica has been given all that was there before it.
const COPIED: &str = "copied";

/// A replica.
pub struct Replica {
    pub(crate) name: Box<str>,
    pub(crate) target: Target,
    directory: PathBuf,
    spool: FileSpool,
    pub(crate) log: Arc<dyn Log>,
    /// Who writes the entries of this process.
    pub(crate) gateway: u64,
    pub(crate) tickets: Tickets,
    pub(crate) meters: Meters,
    /// The position before which all is applied.
    pub(crate) applied: watch::Sender<u64>,
    /// The same, but for rows that were refused for now.
    pub(crate) reached: watch::Sender<u64>,
    /// Keys in the log that are not applied, as far as is known.
    pub(crate) rows: AtomicI64,
    pub(crate) rejected: AtomicU64,
    /// True while all that was there before is still being given to it.
    pub(crate) copying: AtomicBool,
    /// When the oldest entry that is not applied was written.
    oldest: Mutex<Option<SystemTime>>,
    state: Mutex<(Instant, ReplicaState)>,
}

impl Replica {
    /// Opens the log of a replica in a directory, or makes it. A replica whose log is new is given
    /// all rows that are at the primary. `max_bytes`: the most that its log may hold.
    ///
    /// # Errors
    /// The log cannot be opened.
    pub async fn open(
        name: &str,
        (database, names): (Arc<dyn Database>, Names),
        (directory, max_bytes): (&Path, u64),
        meters: Meters,
    ) -> Result<Self, Fault> {
        make(directory)?;
        let gateway = rand::random();
        let options = Options {
            max_bytes,
            segment_bytes: SEGMENT,
            gateway: Some(gateway),
            ..Options::default()
        };
        let opened = FileSpool::open(directory.join("log"), options).await;
        let spool = opened.map_err(|fault| of_log(name, fault.into()))?;
        let log = spool.logs().first().cloned();
        let log = log.ok_or_else(|| Fault::internal("the log of a replica has no partition"))?;
        let status = log.status().await;
        let first = status.map_err(|fault| of_log(name, fault.into()))?.first.0;
        Ok(Self {
            name: name.into(),
            copying: AtomicBool::new(!directory.join(COPIED).exists()),
            directory: directory.to_owned(),
            target: Target::new(database, names),
            spool,
            log,
            gateway,
            tickets: Tickets::default(),
            meters,
            applied: watch::channel(first).0,
            reached: watch::channel(first).0,
            rows: AtomicI64::new(0),
            rejected: AtomicU64::new(0),
            oldest: Mutex::default(),
            state: Mutex::new((Instant::now(), ReplicaState::Starting)),
        })
    }

    /// Appends keys, durably. Gives how many entries that are.
    pub(crate) async fn append(
        &self,
        ticket: u64,
        kind: Kind,
        keys: &[RowWrite],
    ) -> Result<usize, Fault> {
        let batches = entry::batches(ticket, kind, keys);
        let entries = batches.len();
        for batch in batches {
            let appended = self.log.append(batch).await;
            appended.map_err(|fault| of_log(&self.name, fault.into()))?;
        }
        let rows = i64::try_from(keys.len()).unwrap_or(i64::MAX);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        Ok(entries)
    }

    /// All that was there before is in the log, and applied.
    pub(crate) fn copied(&self) -> Result<(), Fault> {
        let path = self.directory.join(COPIED);
        let written = std::fs::File::create(&path).and_then(|file| file.sync_all());
        written.map_err(|error| {
            Fault::unavailable(format!("{} cannot be written: {error}", path.display()))
        })?;
        self.copying.store(false, Ordering::Release);
        Ok(())
    }

    pub(crate) fn is(&self, state: ReplicaState) {
        {
            let mut now = lock(&self.state);
            if now.1 == state {
                return;
            }
            let since = match now.1.as_str() == state.as_str() {
                true => now.0,
                false => Instant::now(),
            };
            *now = (since, state);
        }
        self.meters.measure(&self.status());
    }

    pub(crate) fn oldest(&self, written: Option<SystemTime>) {
        *lock(&self.oldest) = written;
    }

    /// What it is doing.
    pub fn status(&self) -> ReplicaStatus {
        let applied = *self.applied.borrow();
        let entries = self.log.end().0.saturating_sub(applied);
        let (since, state) = lock(&self.state).clone();
        let oldest = lock(&self.oldest).filter(|_| entries > 0);
        let age = oldest.map(|written| written.elapsed().unwrap_or_default());
        ReplicaStatus {
            name: self.name.clone(),
            database: self.target.database.profile().name,
            for_now: since.elapsed(),
            state,
            copying: self.copying.load(Ordering::Acquire),
            applied,
            entries,
            rows: self.rows.load(Ordering::Relaxed).try_into().unwrap_or(0),
            age: age.unwrap_or_default(),
            rejected: self.rejected.load(Ordering::Relaxed),
            failed: self.spool.failure(),
        }
    }

    /// Ends its log.
    pub async fn close(&self) {
        if let Err(fault) = self.spool.close().await {
            tracing::error!(replica = %self.name, %fault, "the log of the replica did not end well");
        }
    }
}

/// Makes the directory of a replica, so that it survives the loss of power.
fn make(directory: &Path) -> Result<(), Fault> {
    let above = directory.parent().unwrap_or(directory);
    let made =
        std::fs::create_dir_all(directory).and_then(|()| std::fs::File::open(above)?.sync_all());
    made.map_err(|error| {
        let path = directory.display();
        Fault::unavailable(format!("the directory {path} cannot be made: {error}"))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a log says, with whose it is.
fn of_log(name: &str, fault: Fault) -> Fault {
    let what = match fault.class {
        FaultClass::Overloaded => "; it empties as the replica catches up (replicas.max_bytes)",
        _ => "",
    };
    let message = format!("the log of the replica {name}: {}{what}", fault.message);
    Fault::new(fault.class, fault.code, message)
}
