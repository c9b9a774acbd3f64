//! The ports of the frontend, which the program provides.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use windrow_core::{Budget, Fault, LaneCounts, LanePorts, LaneStatus, Spooling, Tracer};
use windrow_idempotency::Keys;
use windrow_pgwire::target::Credential;

use crate::client::{Identity, Settings};
use crate::config::Roles;
use crate::metrics::PgMetrics;

/// The key of a lane: one database, one role with its credential, one set of session settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LaneKey {
    /// The database and the role.
    pub identity: Identity,
    /// The session settings.
    pub settings: Settings,
    /// The credential of the lane's role for the server.
    pub credential: Credential,
}

/// All lanes of the process.
#[async_trait]
pub trait Lanes: Send + Sync + 'static {
    /// Returns the ports of the lane of this key, which is started if there is none. Cancel safe.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] for a database that is not configured. A database that
    /// is away is no error here: the lane's writes get it.
    async fn open(&self, key: &LaneKey) -> Result<LanePorts, Fault>;

    /// Ends the lanes of a role and a credential whose login was revoked.
    fn revoke(&self, identity: &Identity, credential: &Credential);
}

/// A spool for the writes of SQL clients. It is applied to one database as one role.
#[derive(Clone, Debug)]
pub struct SqlSpool {
    /// The spool.
    pub spooling: Arc<dyn Spooling>,
    /// The identity that may use the spool: the name that clients know its database by, and its
    /// role.
    pub identity: Identity,
    /// True if `windrow.ack` is `spool` by default.
    pub by_default: bool,
    /// The default of `windrow.read_your_writes`.
    pub read_your_writes: bool,
}

/// The executor of writes with keys. It writes to one database as one role.
#[derive(Clone, Debug)]
pub struct SqlKeys {
    /// The executor.
    pub keys: Keys,
    /// The identity that may use the keys: the name that clients know the database by, and its
    /// role.
    pub identity: Identity,
}

/// The services that the frontend uses.
#[derive(Clone)]
pub struct Services {
    /// The spool for writes that are answered before the database has them, if there is one.
    /// Charged to the same budget.
    pub spool: Option<SqlSpool>,
    /// The executor of writes with keys, if the database can keep keys.
    pub keys: Option<SqlKeys>,
    /// All lanes of the process.
    pub lanes: Arc<dyn Lanes>,
    /// The tracer; `None` if writes are not traced.
    pub tracer: Option<Tracer>,
    /// The memory of the process.
    pub budget: Budget,
    /// The counters.
    pub metrics: PgMetrics,
    /// The console's commands that the program executes.
    pub console: Console,
}

/// The console's commands and tables that the program provides.
#[derive(Clone)]
pub struct Console {
    /// For SHOW LANES: each lane with its role in a database.
    pub lanes: Arc<dyn Fn() -> Vec<(Identity, LaneStatus)> + Send + Sync>,
    /// Returns counts of all lanes since the start, including those that have ended.
    pub counts: Arc<dyn Fn() -> LaneCounts + Send + Sync>,
    /// For RELOAD: reads the configuration again and returns the roles in it, or the error. May
    /// block on files.
    pub reload: Arc<dyn Fn() -> Result<Roles, String> + Send + Sync>,
    /// For SHUTDOWN: cancelled, it ends the process.
    pub shutdown: CancellationToken,
}

impl Default for Console {
    /// Returns a console that shows no lanes and whose RELOAD and SHUTDOWN do nothing.
    fn default() -> Self {
        Self {
            lanes: Arc::new(Vec::new),
            counts: Arc::new(LaneCounts::default),
            reload: Arc::new(|| Err("there is no configuration to be read again".to_owned())),
            shutdown: CancellationToken::new(),
        }
    }
}
