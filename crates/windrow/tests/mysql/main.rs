//! The gateway as a MySQL client sees it, packet by packet, against a real server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod bulk;
mod charsets;
mod differential;
mod generated;
mod idle;
mod kills;
mod races;
mod raw;
mod row_keys;
mod same_keys;
mod spooled;
mod spooled_values;
mod support;
mod tables;
mod waits;
