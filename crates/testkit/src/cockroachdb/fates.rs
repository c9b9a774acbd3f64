//! What becomes of the transactions of one connection, told from its one direction to the other.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// What becomes of each Sync and Query under way: `true`, its result is ambiguous although it was
/// written.
#[derive(Debug, Default)]
pub(super) struct Fates(Mutex<VecDeque<bool>>);

impl Fates {
    pub(super) fn add(&self, ambiguous: bool) {
        let mut fates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fates.push_back(ambiguous);
    }

    pub(super) fn next(&self) -> bool {
        let mut fates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fates.pop_front().unwrap_or(false)
    }
}
