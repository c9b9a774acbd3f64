//! The MySQL and MariaDB sink against a real server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end by any of these"
)]

mod altered;
mod apart;
mod created;
mod differential;
mod faults;
mod generated;
mod interrupt;
mod isolation;
mod keys;
mod lost;
mod moments;
mod order;
mod queue;
mod readback;
mod settings;
mod settled;
mod spooled;
mod support;
mod values;
