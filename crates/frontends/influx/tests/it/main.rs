//! InfluxDB's API as its clients see it: through real sockets, against a lane that the tests play
//! themselves.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

#[path = "../../../http/tests/it/spooled.rs"]
#[expect(dead_code, reason = "shared with the tests of the HTTP frontend")]
mod spooled;
#[path = "../../../http/tests/it/support.rs"]
#[expect(dead_code, reason = "shared with the tests of the HTTP frontend")]
mod support;
mod tokens;
mod writes;

use std::sync::Arc;

use windrow_http::extension::Extension;
use windrow_influx_api::InfluxApi;

/// What the servers of these tests are extended by.
fn extension() -> Option<Arc<dyn Extension>> {
    Some(Arc::new(InfluxApi))
}
