//! The PostgreSQL sink against a real server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end by any of these"
)]

mod alone;
mod altered;
mod created;
mod faults;
mod forms;
mod isolation;
mod keys;
mod lost;
mod moments;
mod order;
mod proven;
mod settled;
mod spooled;
mod support;
mod tables;
mod values;
