//! The lanes of SQL clients for the status page.

use windrow_core::{LaneStatus, Standing};

/// The lanes of one frontend.
pub(super) trait LaneView: Send + Sync {
    /// Returns the state of each lane.
    fn status(&self) -> Vec<LaneStatus>;

    /// Returns the standings of each table, by the statements that clients have sent. If lanes
    /// differ, all of their standings are returned.
    fn standings(&self) -> Vec<Standing>;
}
