//! Pings the database while nobody writes, so that the status page, the metrics and the alerts show
//! an unreachable database before the first write notices it. Also measures the gateway's vital
//! figures.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;
use windrow_core::{Bookkeeping, Database, Intake};
use windrow_http::Readiness;
use windrow_lanes::LaneWatch;

use super::vitals::Vitals;

/// The interval between two pings.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The interval between two measurements of readiness and disks.
const MEASURE_INTERVAL: Duration = Duration::from_secs(15);

/// The interval between two counts of the dead letters.
const COUNT_INTERVAL: Duration = Duration::from_secs(60);

/// The time limit of a measurement.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts pinging. Ends when the handle is dropped.
pub(super) fn start(
    database: Arc<dyn Database>,
    lane: LaneWatch,
    intake: Intake,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            tokio::time::sleep(PROBE_INTERVAL).await;
            // A lane that writes notices an unreachable database itself.
            if lane
                .status()
                .idle
                .is_some_and(|idle| idle >= PROBE_INTERVAL)
            {
                intake.probed(database.ping().await);
            }
        }
    }))
}

/// Starts measuring. Ends when the handle is dropped. `books` are the tables that hold dead
/// letters.
pub(super) fn measure(
    vitals: Vitals,
    ready: Arc<dyn Readiness>,
    books: Option<Arc<dyn Bookkeeping>>,
) -> AbortOnDropHandle<()> {
    let state = async move |vitals: &Vitals| {
        let answer = timeout(MEASURE_TIMEOUT, ready.ready()).await;
        vitals.note_ready(matches!(answer, Ok(Ok(()))));
        vitals.measure_disks().await;
    };
    let letters = async move |vitals: &Vitals| {
        let Some(books) = &books else { return };
        let counting = vitals.count_letters(&**books);
        if let Ok(Err(fault)) = timeout(MEASURE_TIMEOUT, counting).await {
            debug!(%fault, "the dead letters cannot be counted");
        }
    };
    AbortOnDropHandle::new(tokio::spawn(async move {
        tokio::join!(
            every(MEASURE_INTERVAL, || state(&vitals)),
            every(COUNT_INTERVAL, || letters(&vitals)),
        );
    }))
}

/// Runs something at once, and again after each interval.
pub(super) async fn every<F: Future<Output = ()>>(interval: Duration, work: impl Fn() -> F) {
    loop {
        work().await;
        tokio::time::sleep(interval).await;
    }
}
