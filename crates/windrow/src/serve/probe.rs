//! Asks the database for a sign of life while nobody writes, so that the status page, the metrics
//! and the alerts know of a database that is away before the first write does.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;
use windrow_core::{Database, Intake};
use windrow_lanes::LaneWatch;

/// The time between two questions.
const INTERVAL: Duration = Duration::from_secs(5);

/// Starts asking. Ends when the handle is dropped.
pub(super) fn start(
    database: Arc<dyn Database>,
    lane: LaneWatch,
    intake: Intake,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            tokio::time::sleep(INTERVAL).await;
            // A lane that writes finds out by itself.
            if lane.status().idle.is_some_and(|idle| idle >= INTERVAL) {
                intake.probed(database.ping().await);
            }
        }
    }))
}
