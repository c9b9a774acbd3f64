//! The status page: over HTTP, and in a real browser.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod browser;
mod http;
mod metrics;
mod prometheus;
#[expect(dead_code, reason = "these tests do not use all of it")]
#[path = "../it/support.rs"]
mod support;
mod world;
