//! What all connections on their way in share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::secure::Tls;
use crate::databases::Databases;
use crate::metrics::PgMetrics;
use crate::register::Register;

/// What all connections on their way in share.
pub(crate) struct Shared {
    /// How long a client may take to come in.
    pub(crate) login_timeout: Duration,
    /// Refuse clients that do not use TLS.
    pub(crate) require_tls: bool,
    /// The most clients at once.
    pub(crate) max_clients: usize,
    /// One for each client that may be in.
    pub(crate) client_slots: Arc<Semaphore>,
    /// TLS for clients.
    pub(crate) tls: Option<Tls>,
    /// Who may come in.
    pub(crate) access: Arc<Access>,
    /// The databases, and server connections to them.
    pub(crate) databases: Arc<Databases>,
    /// Who is in.
    pub(crate) register: Arc<Register>,
    /// What is counted.
    pub(crate) metrics: PgMetrics,
    /// Nobody comes in any more once this is cancelled, and sessions end.
    pub(crate) stop: CancellationToken,
}
