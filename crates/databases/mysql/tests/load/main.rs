//! LOAD DATA LOCAL against a real server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end by any of these"
)]

mod alike;
mod chance;
mod filtered;
mod lost;
mod marks;
mod mixed;
mod portions;
mod support;
