//! State that all connections of a stand-in share: the trouble to come, and what was seen.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::listener::locked;

/// An event in a transaction that writes
/// (<https://www.cockroachlabs.com/docs/stable/transaction-retry-error-reference>,
/// <https://www.cockroachlabs.com/docs/stable/common-errors#result-is-ambiguous>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// None; for transactions after this one.
    None,
    /// The first statement fails: the transaction has to be restarted (40001).
    Restart,
    /// The transaction has to be restarted (40001) at its end, when all statements are answered.
    RestartAtCommit,
    /// The result is ambiguous (40003), and the transaction was written.
    AmbiguousWritten,
    /// The result is ambiguous (40003), and the transaction was not written.
    AmbiguousLost,
}

/// Shared by all connections.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    troubles: Mutex<VecDeque<Trouble>>,
    refused: Mutex<Vec<(String, String)>>,
    upserts: AtomicU64,
}

impl Troubles {
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

/// The outcomes of one connection's transactions, from its one direction to the other: for each
/// Sync and Query under way, true if the result is ambiguous although it was written.
#[derive(Debug, Default)]
pub(super) struct Fates(Mutex<VecDeque<bool>>);

impl Fates {
    pub(super) fn add(&self, is_ambiguous: bool) {
        locked(&self.0).push_back(is_ambiguous);
    }

    pub(super) fn next(&self) -> bool {
        locked(&self.0).pop_front().unwrap_or(false)
    }
}

/// The PostgreSQL behind the stand-in.
#[derive(Debug)]
pub(super) struct Upstream {
    /// The URL of its database, for lookups.
    pub(super) url: String,
    /// The server's `host:port`.
    pub(super) address: String,
    pub(super) version: String,
    /// True if the version is reported at the start of a session.
    pub(super) reports: bool,
}
