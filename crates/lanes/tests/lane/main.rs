//! A lane on a stopped clock, with a sink whose flights the test holds in its hand.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests: failing is what they are for"
)]

mod apart;
mod cancel;
mod failures;
mod flights;
mod flow;
mod gather;
mod idle;
mod interrupt;
mod policies;
mod storm;
mod support;
