//! Replicas, through the real program and real databases.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod away;
mod copied;
mod differing;
mod figures;
mod kills;
mod load;
mod lost_lanes;
mod mixed;
mod side_by_side;
mod sql;
mod support;
#[cfg(feature = "kafka")]
mod topic;
