//! Many rows in one transaction, on real SQLite files.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may end by any of these"
)]

mod alike;
mod filtered;
mod marks;
mod portions;
mod support;
