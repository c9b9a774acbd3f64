//! The outcome of one batch, within a database or across two.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use windrow_core::Fault;
use windrow_core::moves::{Mover, Rejected};

/// The most tables, or rows, that a mover remembers.
const MAX_REMEMBERED: usize = 10_000;

/// The outcome of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Rows locked by this batch; 0 if other sessions hold all remaining rows.
    pub(super) picked: u64,
    /// Rows that are in their destinations.
    pub(super) moved: u64,
    /// Rows that became dead letters.
    pub(super) rejected: u64,
    /// True if there was no other row that no session held.
    pub(super) last: bool,
}

/// A row that is refused.
pub(super) struct Refusal {
    /// The place of the row in the batch.
    pub(super) row: usize,
    /// The row's destination; empty if there is none.
    pub(super) destination: String,
    pub(super) fault: Fault,
}

impl Refusal {
    pub(super) fn new(row: usize, destination: String, fault: Fault) -> Self {
        Self {
            row,
            destination,
            fault,
        }
    }
}

/// Makes refused rows dead letters, within the transaction of the batch.
pub(super) async fn reject(mover: &mut dyn Mover, refusals: &[Refusal]) -> Result<(), Fault> {
    if refusals.is_empty() {
        return Ok(());
    }
    let rejected = refusals.iter().map(|refusal| Rejected {
        row: refusal.row,
        destination: &refusal.destination,
        fault: &refusal.fault,
    });
    mover.reject(&rejected.collect::<Vec<_>>()).await
}

/// The properties of tables, or of rows, that a mover remembers.
pub(super) struct Remembered<K, T>(HashMap<K, T>);

impl<K, T> Default for Remembered<K, T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, T> Remembered<K, T> {
    pub(super) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&T>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    pub(super) fn take<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }

    pub(super) fn insert(&mut self, key: K, known: T) {
        if self.0.len() >= MAX_REMEMBERED {
            self.0.clear();
        }
        self.0.insert(key, known);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
