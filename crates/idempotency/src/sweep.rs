//! Deletes old keys.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use windrow_bookkeeping::forget_keys;
use windrow_core::Bookkeeping;

/// The most parts deleted in one transaction.
const STEP: usize = 1000;
/// The shortest and the longest delay between two checks.
const RESTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// Deletes keys that are older than `age`, at most a twentieth of `age` late, until `stop` is
/// cancelled. A database that is away keeps them until it is back.
pub async fn sweep(tables: Arc<dyn Bookkeeping>, age: Duration, stop: CancellationToken) {
    let rest = (age / 20).clamp(RESTS.0, RESTS.1);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(rest) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = forget(&*tables, age) => {}
        }
    }
}

async fn forget(tables: &dyn Bookkeeping, age: Duration) {
    loop {
        match forget_keys(tables, age, STEP).await {
            Ok(forgotten) if forgotten >= STEP as u64 => {}
            Ok(_) => return,
            Err(fault) => {
                tracing::debug!(%fault, "old idempotency keys were not forgotten");
                return;
            }
        }
    }
}
