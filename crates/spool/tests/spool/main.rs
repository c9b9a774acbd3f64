//! The spool against a disk that lies, is full and loses power, and against a real one.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "helpers of tests may do as tests may"
)]

mod appending;
mod basics;
mod crashes;
mod damage;
mod disk;
mod faults;
mod fixture;
mod help;
mod kill;
mod limits;
mod look;
mod model;
