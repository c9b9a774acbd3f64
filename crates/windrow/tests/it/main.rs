//! The gateway as its clients see it: over HTTP and as a library, against real databases.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod alone;
mod checked;
mod command;
mod doctor;
mod envelope;
mod examples;
mod input;
mod keys;
mod lanes;
mod library;
mod line_protocol;
mod listed;
mod mariadb;
mod moments;
mod operation;
mod poison;
mod read_only;
mod restart;
mod schema;
mod shared_keys;
mod sockets;
mod support;
mod values;
mod waiting;
