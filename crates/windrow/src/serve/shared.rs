//! Parts of the process that the frontends of SQL clients share.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use windrow_core::{Budget, Database, Spooling, Tracer};
use windrow_idempotency::Keys;
use windrow_lanes::LaneMetrics;
use windrow_replicas::Primary;

use super::reload::Reload;

/// The shared parts.
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "some are used by the PostgreSQL frontend alone")
)]
pub(super) struct Shared<'a> {
    /// The database that rows are written to.
    #[cfg_attr(
        not(feature = "mysql"),
        expect(dead_code, reason = "only the MySQL frontend asks the server by it")
    )]
    pub(super) database: &'a Arc<dyn Database>,
    pub(super) budget: &'a Budget,
    pub(super) lane_metrics: &'a LaneMetrics,
    pub(super) registry: &'a mut Registry,
    /// The spool for writes that are answered before they are in the database.
    pub(super) spool: Option<Arc<dyn Spooling>>,
    /// The executor of writes with keys.
    pub(super) keys: Option<Keys>,
    /// The primary of the replicas, which must get what clients write to its database.
    pub(super) primary: Option<Arc<Primary>>,
    /// The destination of spans, if writes are traced.
    pub(super) tracer: Option<Tracer>,
    pub(super) reload: Reload,
    /// Ends the process when it is cancelled.
    pub(super) stop: CancellationToken,
}
