//! The SQLite sink against real files.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_wrap,
    reason = "a test ends with its first surprise, in its helpers too"
)]

mod alone;
mod company;
mod create;
mod differential;
mod faults;
mod keys;
mod ops;
mod schema;
mod service;
mod spooled;
mod support;
mod units;
mod values;
