//! ArangoDB's API as its clients see it: through real sockets, against a lane that the tests play
//! themselves.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod documents;
mod envelope;
mod spool;
#[path = "../../../http/tests/it/spooled.rs"]
#[expect(dead_code, reason = "shared with the tests of the HTTP frontend")]
mod spooled;
#[path = "../../../http/tests/it/support.rs"]
#[expect(dead_code, reason = "shared with the tests of the HTTP frontend")]
mod support;

use std::sync::Arc;

use windrow_arango_api::ArangoApi;
use windrow_http::extension::Extension;

/// What the servers of these tests are extended by.
fn extension() -> Option<Arc<dyn Extension>> {
    Some(Arc::new(ArangoApi::new(true)))
}
