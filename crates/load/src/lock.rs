//! Locks that stay usable after a panic, because their holders never leave the data half changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a holder has panicked.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
