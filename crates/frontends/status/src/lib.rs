//! The status page at `/` of the HTTP listener, and what it shows as JSON: an extension of
//! [`windrow_http`].
//!
//! Nothing is counted for it. While somebody looks, and for an hour after, the metrics and the
//! state of the lanes are read every few seconds; at other times nothing is done.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `api` | [`StatusPage`], which the HTTP server is given |
//! | `page` | the page itself, and what browsers are told of it |
//! | `watcher` | reads the sources while somebody looks, and tells all who do |
//! | `snapshot` | one look, as JSON |
//! | `figures` | sums and histograms out of the metrics' text |
//! | `tasks` | loads and moves that tell how far they are |
//! | `samples` | the lines of the metrics' text |
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
pub use tasks::LONGEST;
