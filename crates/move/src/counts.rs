//! Counters of a running move.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a running move. The move writes them; a progress display reads them.
#[derive(Debug, Default)]
pub struct Counts {
    moved: AtomicU64,
    rejected: AtomicU64,
    batches: AtomicU64,
    held: AtomicU64,
}

/// The values of the counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Rows that are in their destinations and gone from the source.
    pub moved: u64,
    /// Rows that became dead letters.
    pub rejected: u64,
    /// Batches that were committed.
    pub batches: u64,
    /// Rows that stay in the source because rows of other tables refer to them. Counted once the
    /// move has come to its end.
    pub held: u64,
}

impl Counts {
    /// Reads the counters.
    pub fn read(&self) -> Counted {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            moved: get(&self.moved),
            rejected: get(&self.rejected),
            batches: get(&self.batches),
            held: get(&self.held),
        }
    }

    /// Notes how many rows stay in the source because others refer to them.
    pub fn set_held(&self, rows: u64) {
        self.held.store(rows, Ordering::Relaxed);
    }

    pub(super) fn committed(&self, moved: u64, rejected: u64) {
        self.moved.fetch_add(moved, Ordering::Relaxed);
        self.rejected.fetch_add(rejected, Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
    }
}

/// Rows that may still be moved, shared by all movers.
#[derive(Debug)]
pub(super) struct Ration {
    left: Option<AtomicU64>,
}

impl Ration {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            left: limit.map(AtomicU64::new),
        }
    }

    /// Takes at most `rows` of the rows that are left.
    pub(super) fn take(&self, rows: usize) -> usize {
        let Some(left) = &self.left else { return rows };
        let wanted = rows as u64;
        let before = left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.saturating_sub(wanted))
            })
            .unwrap_or_default();
        usize::try_from(before.min(wanted)).unwrap_or(rows)
    }

    /// Returns rows that were taken and not used.
    pub(super) fn give_back(&self, rows: usize) {
        if let Some(left) = &self.left {
            left.fetch_add(rows as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_given_than_there_is() {
        let ration = Ration::new(Some(10));
        assert_eq!((ration.take(7), ration.take(7), ration.take(7)), (7, 3, 0));
        ration.give_back(2);
        assert_eq!(ration.take(7), 2);
        assert_eq!(Ration::new(None).take(7), 7);
    }
}
