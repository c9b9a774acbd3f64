//! A replica: its database, its log, and the names of its tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio::sync::watch;
use windrow_core::{Database, Fault, FaultClass, Write};
use windrow_spool::SpoolFault;

use crate::entry::{Kind, Sign};
use crate::log::KeyLog;
use crate::members::Copying;
use crate::metrics::Meters;
use crate::status::{ReplicaState, ReplicaStatus};
use crate::target::{Names, Target};
use crate::tickets::Tickets;

/// The time limit of the last sign to other gateways.
const FAREWELL: Duration = Duration::from_secs(3);

/// A replica.
pub struct Replica {
    pub(crate) name: Box<str>,
    pub(crate) target: Target,
    pub(crate) log: KeyLog,
    pub(crate) tickets: Tickets,
    pub(crate) meters: Meters,
    /// The position before which everything that this gateway applies is applied.
    pub(crate) applied: watch::Sender<u64>,
    /// The same position, ignoring rows that were refused for now.
    pub(crate) reached: watch::Sender<u64>,
    /// The known numbers of entries and keys in the log that are not applied.
    pub(crate) entries: AtomicI64,
    pub(crate) rows: AtomicI64,
    /// The number of other gateways that have not applied all of their entries.
    pub(crate) others: AtomicUsize,
    pub(crate) rejected: AtomicU64,
    /// The gateway that still copies existing rows, if any.
    pub(crate) copying: watch::Sender<Copying>,
    /// The time at which the oldest entry that is not applied was written.
    oldest: Mutex<Option<SystemTime>>,
    state: Mutex<(Instant, ReplicaState)>,
}

impl Replica {
    /// Returns a replica with its log. A replica with a new log gets all existing rows of the
    /// primary.
    ///
    /// # Errors
    /// The log does not report its first position.
    pub async fn new(
        name: &str,
        (database, names): (Arc<dyn Database>, Names),
        log: KeyLog,
        meters: Meters,
    ) -> Result<Self, Fault> {
        let first = log.first().await;
        let first = first.map_err(|fault| of_log(name, fault))?;
        let copying = match (log.is_alone(), log.is_copied()) {
            (_, true) => Copying::Done,
            (true, false) => Copying::Here,
            // The log shows it, once it is read.
            (false, false) => Copying::Elsewhere,
        };
        Ok(Self {
            name: name.into(),
            copying: watch::channel(copying).0,
            target: Target::new(database, names),
            log,
            tickets: Tickets::default(),
            meters,
            applied: watch::channel(first).0,
            reached: watch::channel(first).0,
            entries: AtomicI64::new(0),
            rows: AtomicI64::new(0),
            others: AtomicUsize::new(0),
            rejected: AtomicU64::new(0),
            oldest: Mutex::default(),
            state: Mutex::new((Instant::now(), ReplicaState::Starting)),
        })
    }

    /// Appends keys, durably. Returns the number of entries.
    pub(crate) async fn append(
        &self,
        ticket: u64,
        kind: Kind,
        keys: &[Write],
    ) -> Result<usize, Fault> {
        let appended = self.log.append(ticket, kind, keys).await;
        let entries = appended.map_err(|fault| of_log(&self.name, fault))?;
        self.behind(entries, keys.len().max(1));
        Ok(entries)
    }

    /// Counts entries and keys to be applied.
    pub(crate) fn behind(&self, entries: usize, keys: usize) {
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.entries.fetch_add(whole(entries), Ordering::Relaxed);
        self.rows.fetch_add(whole(keys), Ordering::Relaxed);
    }

    /// Counts entries and keys that are done.
    pub(crate) fn done(&self, entries: usize, keys: usize) {
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.entries.fetch_sub(whole(entries), Ordering::Relaxed);
        self.rows.fetch_sub(whole(keys), Ordering::Relaxed);
    }

    /// True while existing rows are copied to it.
    pub(crate) fn is_copying(&self) -> bool {
        *self.copying.borrow() != Copying::Done
    }

    /// Notes that all existing rows are in the log and applied.
    pub(crate) fn copied(&self) -> Result<(), Fault> {
        self.log.note_copied()?;
        self.copying.send_replace(Copying::Done);
        Ok(())
    }

    /// Appends a sign of life with this gateway's position.
    pub(crate) async fn sign(&self, leaves: bool) -> Result<(), SpoolFault> {
        let sign = || Sign {
            applied: *self.applied.borrow(),
            copied: !self.is_copying(),
            leaves,
        };
        self.log.sign(sign).await
    }

    pub(crate) fn is(&self, state: ReplicaState) {
        {
            let mut now = self.state.lock();
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
        *self.oldest.lock() = written;
    }

    /// Returns the state of the replica.
    pub fn status(&self) -> ReplicaStatus {
        let (since, state) = self.state.lock().clone();
        let left = |count: &AtomicI64| count.load(Ordering::Relaxed).try_into().unwrap_or(0);
        let entries = left(&self.entries);
        let oldest = self.oldest.lock().filter(|_| entries > 0);
        let age = oldest.map(|written| written.elapsed().unwrap_or_default());
        ReplicaStatus {
            name: self.name.clone(),
            database: self.target.database.profile().name,
            for_now: since.elapsed(),
            state,
            copying: self.is_copying(),
            applied: *self.applied.borrow(),
            entries,
            rows: left(&self.rows),
            age: age.unwrap_or_default(),
            others: self.others.load(Ordering::Relaxed),
            rejected: self.rejected.load(Ordering::Relaxed),
            failed: self.log.failure(),
            log_away: self.log.away(),
        }
    }

    /// Closes its log, after a last sign that tells other gateways what is left to them.
    pub async fn close(&self) {
        if !self.log.is_alone() {
            let farewell = tokio::time::timeout(FAREWELL, self.sign(true)).await;
            if !matches!(farewell, Ok(Ok(()))) {
                tracing::warn!(replica = %self.name, "the last sign to other gateways was not written: they notice in some seconds that this one has ended");
            }
        }
        if let Err(fault) = self.log.close().await {
            tracing::error!(replica = %self.name, %fault, "the log of the replica did not end well");
        }
    }
}

/// Returns the fault of a log, with the replica's name. The write of the entry is certainly not
/// executed, even if it is unknown whether the log has the entry.
fn of_log(name: &str, fault: SpoolFault) -> Fault {
    let fault = Fault::from(fault);
    let (class, code, what) = match fault.class {
        FaultClass::Unknown => (
            FaultClass::Unavailable,
            "58030".into(),
            "; nothing was written",
        ),
        FaultClass::Overloaded => {
            let what = "; it empties as the replica catches up (replicas.max_bytes)";
            (fault.class, fault.code, what)
        }
        class => (class, fault.code, ""),
    };
    let message = format!("the log of the replica {name}: {}{what}", fault.message);
    Fault::new(class, code, message)
}
