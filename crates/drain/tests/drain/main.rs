//! The drain against a database in memory that loses connections, refuses writes, forgets commits
//! and leaves open whether they took place.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "helpers of tests may do as tests may"
)]

mod beside;
mod fake;
mod files;
mod limits;
mod model;
mod places;
mod refusals;
mod troubles;
mod ways;
