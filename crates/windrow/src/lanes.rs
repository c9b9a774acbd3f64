//! The size of a program's lanes, and the lane of reads for a database that can read during its
//! writes. A read in that lane waits for no write, and for no lock of another process.

use windrow_core::{Budget, Database, Intake, Limits};
use windrow_lanes::{Lane, LaneMetrics, LaneWatch};

/// The number of submissions between the frontends and a lane. The memory budget limits what waits;
/// this limits only the channel.
pub(crate) const LANE_CAPACITY: usize = 1024;

/// A running lane of reads.
#[derive(Debug)]
pub(crate) struct ReadLane {
    intake: Intake,
    lane: Lane,
}

impl ReadLane {
    /// Starts the lane, if the database can use it.
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

    /// Returns the intake, which accepts units that only read.
    pub(crate) fn intake(&self) -> &Intake {
        &self.intake
    }

    pub(crate) fn watch(&self) -> LaneWatch {
        self.lane.watch()
    }

    /// Finishes all units that were accepted, and ends.
    pub(crate) async fn shutdown(self) {
        self.lane.shutdown().await;
    }
}
