//! The ports through which the program around the frontend serves it.

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
    /// Asks whether the database answers. Cancel safe.
    ///
    /// # Errors
    /// Why it does not.
    async fn ready(&self) -> Result<(), Fault>;
}

/// The ports of a running frontend.
#[derive(Clone)]
pub struct Services {
    /// Where writes go.
    pub intake: Intake,
    /// The lane of reads, if the database reads beside its writes: for reads that have no write of
    /// their client's to wait for. Its memory is charged to the same budget.
    pub reads: Option<Intake>,
    /// Where writes go that are answered before the database has them, if there is a spool. Its
    /// memory is charged to the same budget.
    pub spool: Option<Arc<dyn Spooling>>,
    /// Executes requests with an `Idempotency-Key`, if the database can keep keys.
    pub keys: Option<Keys>,
    /// When writes are answered whose request does not say so.
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
    /// Where requests are traced: where their spans go.
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
