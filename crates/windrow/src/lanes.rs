//! The lanes of a program: their size, and the lane of reads, for a database that reads beside its
//! writes. A read there waits for no write, nor for a lock that another process holds.

use windrow_core::{Budget, Database, Intake, Limits};
use windrow_lanes::{Lane, LaneMetrics, LaneWatch};

/// Submissions between the frontends and a lane. What waits is bounded by the memory budget; this
/// bounds only the channel.
pub(crate) const LANE_CAPACITY: usize = 1024;

/// A running lane of reads.
#[derive(Debug)]
pub(crate) struct ReadLane {
    intake: Intake,
    lane: Lane,
}

impl ReadLane {
    /// Starts the lane, if the database has a use for it.
    pub(crate) fn start(
        database: &dyn Database,
        limits: &Limits,
        budget: &Budget,
        metrics: &LaneMetrics,
    ) -> Option<Self> {
        let sink = database.reads()?;
        let (intake, arrivals) = Intake::channel(budget.clone(), LANE_CAPACITY);
        let (limits, metrics) = (limits.clone(), metrics.clone());
        let lane = Lane::start(sink, limits, arrivals, metrics, "reads".into());
        Some(Self { intake, lane })
    }

    /// Returns the way in. It takes units that only read.
    pub(crate) fn intake(&self) -> &Intake {
        &self.intake
    }

    pub(crate) fn watch(&self) -> LaneWatch {
        self.lane.watch()
    }

    /// Finishes all that was accepted and ends.
    pub(crate) async fn shutdown(self) {
        self.lane.shutdown().await;
    }
}
