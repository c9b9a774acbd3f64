//! Counters of a running load.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a running load. The load writes them; a progress display reads them.
#[derive(Debug, Default)]
pub struct Meter {
    written: AtomicU64,
    ignored: AtomicU64,
    rejected: AtomicU64,
    before: AtomicU64,
    bytes: AtomicU64,
}

/// The values of the counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Rows that were written.
    pub written: u64,
    /// Rows that were left out because their key existed.
    pub ignored: u64,
    /// Rows that were refused.
    pub rejected: u64,
    /// Rows that an earlier run had done.
    pub before: u64,
    /// Bytes of the files that were read, as they lie on the disk.
    pub bytes: u64,
}

impl Reading {
    /// Returns the rows that this run has finished.
    pub fn rows(&self) -> u64 {
        self.written + self.ignored + self.rejected
    }
}

impl Meter {
    /// Reads the counters.
    pub fn read(&self) -> Reading {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Reading {
            written: get(&self.written),
            ignored: get(&self.ignored),
            rejected: get(&self.rejected),
            before: get(&self.before),
            bytes: get(&self.bytes),
        }
    }

    pub(super) fn done(&self, written: u64, ignored: u64) {
        self.written.fetch_add(written, Ordering::Relaxed);
        self.ignored.fetch_add(ignored, Ordering::Relaxed);
    }

    pub(super) fn rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn before(&self, rows: u64) {
        self.before.fetch_add(rows, Ordering::Relaxed);
    }

    pub(super) fn bytes_at(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}
