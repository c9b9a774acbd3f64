//! How many connections to the server of one database there may be: those of lanes and those of
//! sessions together.
//!
//! Whoever needs one takes a slot, in the order of asking. Connections that nothing is under way
//! on are given up where somebody waits: a lane opens another one when it has work again.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use windrow_core::{Fault, FaultClass, Name};

/// Who has connections that nothing is under way on.
pub trait IdleConnections: Send + Sync {
    /// Closes those that it has without a slot beyond this many.
    fn shrink(&self, free: usize) {
        let _ = free;
    }

    /// Lets those go soon that it has slots for.
    fn rest(&self) {}
}

/// The connections of one database.
pub struct ConnectionSlots {
    database: Name,
    most: usize,
    wait: Duration,
    free: Arc<Semaphore>,
    /// Those who wait for one, and the news of one more.
    waiting: AtomicUsize,
    wanted: Notify,
    holders: Mutex<Vec<Weak<dyn IdleConnections>>>,
}

/// The right to have one connection.
#[derive(Debug)]
pub struct ConnectionSlot {
    since: Instant,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlot {
    fn of(permit: OwnedSemaphorePermit) -> Self {
        Self {
            since: Instant::now(),
            _permit: permit,
        }
    }

    /// For how long it has been taken.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

impl ConnectionSlots {
    /// `most` at once; whoever waits for longer than `wait` is told so.
    pub fn new(database: impl Into<Name>, most: usize, wait: Duration) -> Arc<Self> {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            database: database.into(),
            most,
            wait,
            free: Arc::new(Semaphore::new(most)),
            waiting: AtomicUsize::default(),
            wanted: Notify::new(),
            holders: Mutex::default(),
        })
    }

    /// The most.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Makes somebody known who may give connections up. It is forgotten once it is dropped.
    pub fn register(&self, holder: Weak<dyn IdleConnections>) {
        let mut holders = self.holders();
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(holder);
    }

    /// A slot, as soon as there is one, in the order of asking. Cancel safe.
    ///
    /// # Errors
    /// [`FaultClass::Overloaded`] (53300) where none became free in time.
    pub async fn take(&self) -> Result<ConnectionSlot, Fault> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(ConnectionSlot::of(permit));
        }
        let _waiting = Waiting::new(self);
        self.ask_for_one();
        let acquired = timeout(self.wait, Arc::clone(&self.free).acquire_owned()).await;
        let acquired = acquired.ok().and_then(Result::ok);
        let permit = acquired
            .ok_or_else(|| self.occupied(&format!("within {:?} (server_wait)", self.wait)))?;
        Ok(ConnectionSlot::of(permit))
    }

    /// As [`ConnectionSlots::take`], without waiting for others.
    ///
    /// # Errors
    /// The same, where none is free now.
    pub fn take_now(&self) -> Result<ConnectionSlot, Fault> {
        let permit = Arc::clone(&self.free).try_acquire_owned();
        let permit = permit.map_err(|_| self.occupied("at this moment"))?;
        Ok(ConnectionSlot::of(permit))
    }

    /// Has connections without slots closed that are beyond what is free. For who has taken a
    /// slot, and none of those.
    pub fn settle(&self) {
        let free = self.free();
        for holder in self.all() {
            holder.shrink(free);
        }
    }

    fn ask_for_one(&self) {
        for holder in self.all() {
            holder.rest();
        }
    }

    /// Has all connections closed that nothing is under way on.
    pub fn clear(&self) {
        for holder in self.all() {
            holder.shrink(0);
            holder.rest();
        }
    }

    /// True while somebody waits.
    pub fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// How many more there may be at this moment.
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Waits until somebody waits for a slot. Cancel safe.
    pub async fn wanted(&self) {
        let wanted = self.wanted.notified();
        tokio::pin!(wanted);
        wanted.as_mut().enable();
        // Who began to wait before the listening is counted already.
        if !self.is_wanted() {
            wanted.await;
        }
    }

    fn occupied(&self, when: &str) -> Fault {
        let text = format!(
            "no server connection became free {when}: all {} of database \"{}\" are in use (max_server_connections)",
            self.most, self.database
        );
        let hint = "Transactions, temporary tables, LISTEN, session locks, unproven code and the like keep a server connection; SHOW CLIENTS at the console says who does, and unproven = \"reset\" lets those of unproven code go.";
        Fault::new(FaultClass::Overloaded, "53300", text).with_hint(Some(hint))
    }

    fn all(&self) -> Vec<Arc<dyn IdleConnections>> {
        self.holders().iter().filter_map(Weak::upgrade).collect()
    }

    fn holders(&self) -> MutexGuard<'_, Vec<Weak<dyn IdleConnections>>> {
        // Each change is whole at any moment.
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ConnectionSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSlots")
            .field("database", &self.database)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

/// Counts one that waits, as long as it does.
struct Waiting<'a>(&'a ConnectionSlots);

impl<'a> Waiting<'a> {
    fn new(slots: &'a ConnectionSlots) -> Self {
        slots.waiting.fetch_add(1, Ordering::SeqCst);
        slots.wanted.notify_waiters();
        Self(slots)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
