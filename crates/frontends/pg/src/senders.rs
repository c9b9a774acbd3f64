//! Senders of notifications: maps the server process that sent a notification to the number of the
//! session that caused it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The sessions behind server processes.
#[derive(Debug, Default)]
pub(crate) struct Senders(Mutex<HashMap<i32, i32>>);

/// A server process over which a session has sent notifications, known as long as its connection
/// lives.
#[derive(Debug)]
pub(crate) struct Sender {
    senders: Arc<Senders>,
    process: i32,
}

impl Senders {
    /// Notes that the notifications of a server process come from a session from now on, by the
    /// number that its client got.
    pub(crate) fn note(self: &Arc<Self>, process: i32, session: i32) -> Sender {
        self.0.lock().insert(process, session);
        Sender {
            senders: Arc::clone(self),
            process,
        }
    }

    /// Returns the session of a server process.
    pub(crate) fn session(&self, process: i32) -> Option<i32> {
        self.0.lock().get(&process).copied()
    }
}

impl Sender {
    /// Notes another session for the same server process.
    pub(crate) fn now_for(&self, session: i32) {
        self.senders.0.lock().insert(self.process, session);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.senders.0.lock().remove(&self.process);
    }
}
