//! What the console shows and changes.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windrow_core::Budget;

use crate::admit::Access;
use crate::bypass::Bypass;
use crate::config::PgConfig;
use crate::databases::Databases;
use crate::gate::Gate;
use crate::metrics::PgMetrics;
use crate::register::Register;
use crate::services::Console;

/// What the console shows and changes.
pub(crate) struct Shared {
    /// What is configured.
    pub(crate) config: PgConfig,
    /// The databases, and server connections to them.
    pub(crate) databases: Arc<Databases>,
    /// Who may come in.
    pub(crate) access: Arc<Access>,
    /// Who is in.
    pub(crate) register: Arc<Register>,
    /// Holds work back while a database is paused.
    pub(crate) gate: Arc<Gate>,
    /// Statements that were not joined, by reason.
    pub(crate) bypass: Arc<Bypass>,
    /// What is counted.
    pub(crate) metrics: PgMetrics,
    /// The memory of the process.
    pub(crate) budget: Budget,
    /// What is not the frontend's own.
    pub(crate) console: Console,
    /// Sessions end what is under way and leave once this is cancelled.
    pub(crate) stop: CancellationToken,
}
