//! Clients of the MySQL frontend, before a real server. Servers of the test's own, so none runs if
//! MariaDB is not installed.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests may panic as tests may"
)]

mod admission;
mod bytes;
mod drivers;
mod endings;
mod support;
