//! Event loops of one thread.

use anyhow::Result;
use tokio::runtime::{Builder, Runtime};

/// Returns an event loop of the calling thread.
///
/// # Errors
/// The system has no more files.
pub fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Runs a future to its end on this thread.
///
/// # Errors
/// The future fails.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    runtime()?.block_on(future)
}
