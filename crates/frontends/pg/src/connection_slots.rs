//! Slots for connections to the server of one database, shared by lanes and sessions.
//!
//! A task that needs a connection takes a slot, in the order of asking. If a task waits, idle
//! connections are closed; a lane opens another one when it has work again. A session may keep its
//! connection for as long as it likes, so one slot is reserved for lanes: otherwise sessions that
//! keep theirs would block all joined writes.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use windrow_core::{Fault, FaultClass, Name};

/// An owner of idle connections.
pub trait IdleConnections: Send + Sync {
    /// Closes its idle connections without slots beyond this number.
    fn shrink(&self, free: usize) {
        let _ = free;
    }

    /// Closes its idle connections with slots soon.
    fn rest(&self) {}
}

/// The connections of one database.
pub struct ConnectionSlots {
    database: Name,
    most: usize,
    wait: Duration,
    free: Arc<Semaphore>,
    /// The slots that sessions may use.
    free_for_sessions: Arc<Semaphore>,
    most_for_sessions: usize,
    /// The number of waiting tasks, the number of sessions that wait for other sessions, and the
    /// notification of one more.
    waiting: AtomicUsize,
    waiting_for_sessions: AtomicUsize,
    wanted: Notify,
    holders: Mutex<Vec<Weak<dyn IdleConnections>>>,
}

/// The right to one connection.
#[derive(Debug)]
pub struct ConnectionSlot {
    since: Instant,
    _permit: OwnedSemaphorePermit,
    _of_sessions: Option<OwnedSemaphorePermit>,
}

impl ConnectionSlot {
    fn of(permit: OwnedSemaphorePermit, of_sessions: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            since: Instant::now(),
            _permit: permit,
            _of_sessions: of_sessions,
        }
    }

    /// Returns how long it has been taken.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

impl ConnectionSlots {
    /// Returns `most` slots. A task that waits longer than `wait` gets an error.
    pub fn new(database: impl Into<Name>, most: usize, wait: Duration) -> Arc<Self> {
        Self::with(database.into(), most, most, wait)
    }

    /// Returns `most` slots for lanes and sessions; one is reserved for lanes, unless there is only
    /// one.
    pub fn shared(database: impl Into<Name>, most: usize, wait: Duration) -> Arc<Self> {
        Self::with(database.into(), most, most.saturating_sub(1).max(1), wait)
    }

    fn with(database: Name, most: usize, most_for_sessions: usize, wait: Duration) -> Arc<Self> {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        let most_for_sessions = most_for_sessions.clamp(1, most);
        Arc::new(Self {
            database,
            most,
            wait,
            free: Arc::new(Semaphore::new(most)),
            free_for_sessions: Arc::new(Semaphore::new(most_for_sessions)),
            most_for_sessions,
            waiting: AtomicUsize::default(),
            waiting_for_sessions: AtomicUsize::default(),
            wanted: Notify::new(),
            holders: Mutex::default(),
        })
    }

    /// Returns the number of slots.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Registers an owner of connections that may close some. It is removed once it is dropped.
    pub fn register(&self, holder: Weak<dyn IdleConnections>) {
        let mut holders = self.holders.lock();
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(holder);
    }

    /// Takes a slot for a lane, in the order of asking. Cancel safe.
    ///
    /// # Errors
    /// [`FaultClass::Overloaded`] (53300) if none became free in time.
    pub async fn take(&self) -> Result<ConnectionSlot, Fault> {
        let permit = timeout(self.wait, self.acquire()).await.ok().flatten();
        let permit = permit.ok_or_else(|| self.occupied_for_so_long(self.most))?;
        Ok(ConnectionSlot::of(permit, None))
    }

    /// Takes a slot for a session, in the order of asking. Cancel safe.
    ///
    /// # Errors
    /// As [`ConnectionSlots::take`].
    pub async fn take_for_session(&self) -> Result<ConnectionSlot, Fault> {
        let both = async {
            let of_sessions = self.acquire_for_session().await?;
            Some((self.acquire().await?, of_sessions))
        };
        let both = timeout(self.wait, both).await.ok().flatten();
        let (permit, of_sessions) =
            both.ok_or_else(|| self.occupied_for_so_long(self.most_for_sessions))?;
        Ok(ConnectionSlot::of(permit, Some(of_sessions)))
    }

    /// Takes a slot for a session without waiting.
    ///
    /// # Errors
    /// As [`ConnectionSlots::take`], if none is free now.
    pub fn take_for_session_now(&self) -> Result<ConnectionSlot, Fault> {
        let of_sessions = Arc::clone(&self.free_for_sessions).try_acquire_owned();
        let permit = Arc::clone(&self.free).try_acquire_owned();
        match (permit, of_sessions) {
            (Ok(permit), Ok(of_sessions)) => Ok(ConnectionSlot::of(permit, Some(of_sessions))),
            _ => Err(self.occupied("at this moment", self.most_for_sessions)),
        }
    }

    async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(permit);
        }
        let _waiting = WaitingForSlot::new(&self.waiting, &self.wanted);
        self.ask_for_one();
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Waits for a slot that only sessions can free.
    async fn acquire_for_session(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.free_for_sessions).try_acquire_owned() {
            return Some(permit);
        }
        let _waiting = WaitingForSlot::new(&self.waiting_for_sessions, &self.wanted);
        let free = Arc::clone(&self.free_for_sessions);
        free.acquire_owned().await.ok()
    }

    /// Closes idle connections without slots that exceed the free slots. Called after taking a slot
    /// that has no such connection.
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

    /// Closes all idle connections.
    pub fn clear(&self) {
        for holder in self.all() {
            holder.shrink(0);
            holder.rest();
        }
    }

    /// Returns true while a task waits for a slot that a lane can free.
    pub fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Returns true while a task waits for a slot that a session can free.
    pub fn is_wanted_of_session(&self) -> bool {
        self.is_wanted() || self.waiting_for_sessions.load(Ordering::SeqCst) > 0
    }

    /// Returns the number of free slots.
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Waits until a task waits for a slot that a session can free. Cancel safe.
    pub async fn wanted(&self) {
        let wanted = self.wanted.notified();
        tokio::pin!(wanted);
        wanted.as_mut().enable();
        // A task that began to wait before is counted already.
        if !self.is_wanted_of_session() {
            wanted.await;
        }
    }

    fn occupied_for_so_long(&self, most: usize) -> Fault {
        self.occupied(&format!("within {:?} (server_wait)", self.wait), most)
    }

    fn occupied(&self, when: &str, most: usize) -> Fault {
        let all = match most < self.most {
            true => format!("{most} that sessions may have"),
            false => most.to_string(),
        };
        let text = format!(
            "no server connection became free {when}: all {all} of database \"{}\" are in use (max_server_connections)",
            self.database
        );
        let hint = "Transactions, temporary tables, LISTEN, session locks, unproven code and the like keep a server connection; SHOW CLIENTS at the console says who does, and unproven = \"reset\" lets those of unproven code go.";
        Fault::new(FaultClass::Overloaded, "53300", text).with_hint(Some(hint))
    }

    fn all(&self) -> Vec<Arc<dyn IdleConnections>> {
        self.holders
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
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

/// Counts a waiting task until it is dropped.
struct WaitingForSlot<'a>(&'a AtomicUsize);

impl<'a> WaitingForSlot<'a> {
    fn new(waiting: &'a AtomicUsize, wanted: &Notify) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        wanted.notify_waiters();
        Self(waiting)
    }
}

impl Drop for WaitingForSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
