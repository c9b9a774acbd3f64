//! The frontend as its clients see it: through real sockets, against a lane that the tests play
//! themselves.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod abuse;
mod atomic;
mod batch;
mod connections;
mod documents;
mod envelope;
mod keyed;
mod many;
mod memory;
mod one;
mod ops;
mod refusals;
mod support;
mod tls;
