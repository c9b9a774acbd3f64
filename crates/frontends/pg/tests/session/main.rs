//! The session: what clients see of joined and of relayed statements, against the real server.
//!
//! The lanes are played by the test: each executes units one after the other over a connection of
//! its own.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic as tests may"
)]

mod blocks;
mod crowded;
mod followed;
mod generated;
mod joined;
mod lane;
mod left_behind;
mod lost;
mod named;
mod notify;
mod relayed;
mod rewritten;
mod settings;
mod support;
mod tenants;
mod unproven;
mod whole;
