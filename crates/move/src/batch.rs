//! The outcome of one batch, within a database or across two.

use std::collections::HashMap;

use windrow_core::moves::{Mover, Rejected};
use windrow_core::{Fault, TableName};

/// The most tables that a mover remembers.
const MAX_KNOWN: usize = 10_000;

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

/// The tables that a mover remembers.
pub(super) struct KnownTables<T>(HashMap<TableName, T>);

impl<T> Default for KnownTables<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> KnownTables<T> {
    pub(super) fn get(&self, table: &TableName) -> Option<&T> {
        self.0.get(table)
    }

    pub(super) fn insert(&mut self, table: &TableName, known: T) {
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
        self.0.insert(table.clone(), known);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
