//! The state that all connections share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use windrow_core::{CurrentStatements, Tracer};
use windrow_idempotency::Keys;
use windrow_mysqlwire::ErrorPacket;

use crate::access::Access;
use crate::config::MysqlConfig;
use crate::errors;
use crate::lanes::LaneBook;
use crate::metrics::MysqlMetrics;
use crate::profile::Profile;
use crate::register::Register;
use crate::services::{MysqlSpool, Services};

/// The state that all connections share.
pub(crate) struct Shared {
    pub(crate) access: Access,
    pub(crate) register: Arc<Register>,
    pub(crate) profile: Profile,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) metrics: MysqlMetrics,
    pub(crate) lanes: LaneBook,
    pub(crate) spool: Option<MysqlSpool>,
    /// The executor of writes with keys, if there is one.
    pub(crate) keys: Option<Keys>,
    /// The statements whose calls may become row writes.
    pub(crate) current: CurrentStatements,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) client_slots: Arc<Semaphore>,
    server_slots: Arc<Semaphore>,
    /// Cancelled when the frontend ends.
    pub(crate) stop: CancellationToken,
    pub(crate) config: MysqlConfig,
}

impl Shared {
    pub(crate) fn new(config: MysqlConfig, services: Services) -> Self {
        let slots = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self {
            access: Access::new(config.users.clone(), &config.target),
            register: Arc::default(),
            profile: Profile::default(),
            tls: config.tls.clone().map(TlsAcceptor::from),
            metrics: services.metrics,
            lanes: LaneBook::new(services.lanes),
            spool: services.spool,
            keys: services.keys,
            current: CurrentStatements::default(),
            tracer: services.tracer,
            client_slots: slots(config.max_clients),
            server_slots: slots(config.max_server_connections),
            stop: CancellationToken::new(),
            config,
        }
    }

    /// Returns true if the server is MariaDB.
    pub(crate) fn is_mariadb(&self) -> bool {
        self.profile.is_mariadb()
    }

    /// Waits for permission to open a server connection.
    pub(crate) async fn server_slot(&self) -> Result<OwnedSemaphorePermit, ErrorPacket> {
        let wait = self.config.server_wait;
        let slot = timeout(wait, Arc::clone(&self.server_slots).acquire_owned()).await;
        let slot = slot.ok().and_then(Result::ok);
        slot.ok_or_else(|| errors::no_server_connection(wait))
    }
}
