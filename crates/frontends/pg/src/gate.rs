//! The gate that work passes on its way to the database: a unit before it is submitted to its lane,
//! a session before it takes a server connection. Closed by PAUSE.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use windrow_core::Name;

/// The gate, which is open unless the console has paused a database or all of them.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// True while anything is paused. A write only checks this flag.
    closed: AtomicBool,
    paused: Mutex<Paused>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Paused {
    all: bool,
    databases: BTreeSet<Name>,
    /// The databases that tasks wait for.
    waiting: Vec<Name>,
}

impl Paused {
    fn holds(&self, database: &str) -> bool {
        self.all || self.databases.contains(database)
    }
}

impl Gate {
    /// Returns true if [`Gate::pass`] would not wait.
    #[inline]
    pub(crate) fn is_open(&self, database: &str) -> bool {
        !self.closed.load(Ordering::Acquire) || !self.paused.lock().holds(database)
    }

    /// Waits while work in this database is paused. Cancel safe.
    pub(crate) async fn pass(&self, database: &str) {
        while !self.is_open(database) {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            // It may have been opened between the first check and the subscription.
            if self.is_open(database) {
                return;
            }
            let _waiting = Waiting::new(self, database);
            changed.await;
        }
    }

    /// Pauses work in a database, or all work.
    pub(crate) fn pause(&self, database: Option<&str>) {
        let mut paused = self.paused.lock();
        match database {
            Some(database) => drop(paused.databases.insert(database.into())),
            None => paused.all = true,
        }
        self.closed.store(true, Ordering::Release);
    }

    /// Resumes work in a database. Without a name: all work.
    pub(crate) fn resume(&self, database: Option<&str>) {
        let mut paused = self.paused.lock();
        match database {
            Some(database) => drop(paused.databases.remove(database)),
            None => {
                paused.all = false;
                paused.databases.clear();
            }
        }
        let closed = paused.all || !paused.databases.is_empty();
        self.closed.store(closed, Ordering::Release);
        drop(paused);
        self.changed.notify_waiters();
    }

    /// Returns the number of tasks that wait for a database (or for any).
    pub(crate) fn waiting(&self, database: Option<&str>) -> usize {
        let paused = self.paused.lock();
        let waiting = paused.waiting.iter();
        waiting
            .filter(|name| database.is_none_or(|database| ***name == *database))
            .count()
    }

    /// Returns true if a database, or all of them, is paused.
    pub(crate) fn is_paused(&self, database: &str) -> bool {
        self.paused.lock().holds(database)
    }
}

/// Counts a waiting task until it is dropped.
struct Waiting<'a> {
    gate: &'a Gate,
    database: &'a str,
}

impl<'a> Waiting<'a> {
    fn new(gate: &'a Gate, database: &'a str) -> Self {
        gate.paused.lock().waiting.push(database.into());
        Self { gate, database }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut paused = self.gate.paused.lock();
        if let Some(at) = paused
            .waiting
            .iter()
            .position(|name| **name == *self.database)
        {
            paused.waiting.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn holds_back_what_is_paused_and_nothing_else() {
        let gate = Gate::default();
        gate.pass("a").await;
        gate.pause(Some("a"));
        gate.pass("b").await;
        let mut passing = pin!(gate.pass("a"));
        tokio::select! {
            biased;
            () = &mut passing => panic!("passed a closed gate"),
            () = std::future::ready(()) => {}
        }
        assert_eq!((gate.waiting(Some("a")), gate.waiting(Some("b"))), (1, 0));
        gate.resume(Some("b"));
        assert!(!gate.is_open("a") && gate.is_open("b"));
        gate.resume(Some("a"));
        passing.await;
        assert_eq!(gate.waiting(None), 0);
        gate.pause(None);
        assert!(!gate.is_open("b"));
        gate.resume(None);
        assert!(gate.is_open("b"));
    }
}
