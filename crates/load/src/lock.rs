//! Locks whose holders do not leave them half changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also behind a holder that has crashed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
