//! The ports that the program provides to the frontend.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Fault, Intake, Inventory, Spooling, TableName, Tracer};
use windrow_idempotency::Keys;

use crate::ack::Ack;
use crate::metrics::HttpMetrics;

/// A check that the database behind the lanes answers, for `GET /readyz`.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Checks that the database answers. Cancel safe.
    ///
    /// # Errors
    /// The reason why it does not.
    async fn ready(&self) -> Result<(), Fault>;
}

/// The ports of a running frontend.
#[derive(Clone)]
pub struct Services {
    /// The intake of writes.
    pub intake: Intake,
    /// The intake of the lane for reads, if the database reads beside its writes: for reads of
    /// clients that have no write to wait for. Charged to the same budget.
    pub reads: Option<Intake>,
    /// The spool for writes that are answered before the database has them, if there is one.
    /// Charged to the same budget.
    pub spool: Option<Arc<dyn Spooling>>,
    /// Executes requests with an `Idempotency-Key`, if the database can keep keys.
    pub keys: Option<Keys>,
    /// The moment at which writes are answered if the request does not name it.
    pub ack: Ack,
    /// Lists tables and rows, if the database can do that.
    pub inventory: Option<Arc<dyn Inventory>>,
    /// Returns true for a table of the database's own ([`windrow_core::Database::owns`]), which is
    /// not served unless it is listed.
    pub owns: Arc<dyn Fn(&TableName) -> bool + Send + Sync>,
    /// Checks that the database answers.
    pub ready: Arc<dyn Readiness>,
    /// All metrics in OpenMetrics text, for `GET /metrics`.
    pub metrics_text: Arc<dyn Fn() -> String + Send + Sync>,
    /// Returns the activity of each lane, for `GET /v1/lanes`.
    pub lanes: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// The tracer; `None` if requests are not traced.
    pub tracer: Option<Tracer>,
    /// The frontend's own counters.
    pub metrics: HttpMetrics,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("intake", &self.intake)
            .finish_non_exhaustive()
    }
}
