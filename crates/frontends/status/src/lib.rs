//! The status page at `/` of the HTTP listener, and what it shows as JSON: an extension of
//! [`windrow_http`].
//!
//! While a client watches the page, and for an hour after, the crate reads the metrics and the
//! state of the lanes every few seconds. At other times it does nothing.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `api` | [`StatusPage`], which the HTTP server is given |
//! | `page` | the HTML page and its content security policy |
//! | `watcher` | reads the sources while clients watch, and sends them events |
//! | `snapshot` | the state of the process at one moment, as JSON |
//! | `figures` | sums and histograms from the text of the metrics |
//! | `tasks` | progress reports of loads and moves |
//! | `samples` | parses the text of the metrics |
//! | `history` | the last hour, one point every ten seconds |

mod api;
mod figures;
mod history;
mod page;
mod samples;
mod snapshot;
mod tasks;
mod watcher;

pub use api::{ENDPOINTS, StatusPage};
pub use snapshot::Sources;
pub use tasks::MAX_TEXT_BYTES;
