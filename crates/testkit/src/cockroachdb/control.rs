//! What all connections of a stand-in share: the trouble that is to come, and what was seen.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What befalls a transaction that writes
/// (<https://www.cockroachlabs.com/docs/stable/transaction-retry-error-reference>,
/// <https://www.cockroachlabs.com/docs/stable/common-errors#result-is-ambiguous>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// None; for the ones after it.
    None,
    /// Its first statement is told that the transaction has to be restarted (40001).
    Restart,
    /// The same at its end, when all statements have been answered.
    RestartAtCommit,
    /// Its result is ambiguous (40003), and it was written.
    AmbiguousWritten,
    /// Its result is ambiguous (40003), and it was not written.
    AmbiguousLost,
}

/// Shared by all connections.
#[derive(Debug, Default)]
pub(super) struct Control {
    troubles: Mutex<VecDeque<Trouble>>,
    refused: Mutex<Vec<(String, String)>>,
    upserts: AtomicU64,
}

impl Control {
    pub(super) fn add(&self, troubles: impl IntoIterator<Item = Trouble>) {
        locked(&self.troubles).extend(troubles);
    }

    pub(super) fn left(&self) -> usize {
        locked(&self.troubles).len()
    }

    /// Takes the next trouble, if it is one of these.
    pub(super) fn take(&self, wanted: impl Fn(Trouble) -> bool) -> Option<Trouble> {
        let mut troubles = locked(&self.troubles);
        let next = troubles.front().copied();
        next.filter(|trouble| wanted(*trouble)).inspect(|_| {
            troubles.pop_front();
        })
    }

    pub(super) fn note_refused(&self, sql: &str, why: &str) {
        locked(&self.refused).push((sql.to_owned(), why.to_owned()));
    }

    pub(super) fn refused(&self) -> Vec<(String, String)> {
        locked(&self.refused).clone()
    }

    pub(super) fn note_upsert(&self) {
        self.upserts.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn upserts(&self) -> u64 {
        self.upserts.load(Ordering::SeqCst)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
