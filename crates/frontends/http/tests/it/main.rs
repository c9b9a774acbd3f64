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
mod keyed;
mod many;
mod memory;
mod one;
mod ops;
mod packed;
mod reads;
mod refusals;
mod spool;
mod spool_order;
mod spooled;
mod support;
mod tls;
mod tokens;

use std::sync::Arc;

use windrow_http::extension::Extension;

/// What the servers of these tests are extended by: nothing. Other crates take `support` too.
fn extension() -> Option<Arc<dyn Extension>> {
    None
}
