//! The ports of the frontend: the services that it uses.

use std::sync::Arc;

use windrow_core::{Fault, LanePorts, Spooling, Tracer};
use windrow_idempotency::Keys;
use windrow_mysqlwire::LaneLogin;

use crate::metrics::MysqlMetrics;

/// Opens and ends the lanes of the process.
pub trait Lanes: Send + Sync + 'static {
    /// Returns the ports of the lane of a login, which is started if there is none.
    ///
    /// # Errors
    /// There are too many lanes. An unreachable database is no error here: the lane's writes get
    /// that error.
    fn open(&self, login: &LaneLogin) -> Result<LanePorts, Fault>;

    /// Ends the lanes of a user whose login is not admitted any more.
    fn revoke(&self, user: &[u8]);
}

/// The spool. Its rows are written to the database and as the user of the frontend's own target, as
/// writes with keys are.
#[derive(Clone, Debug)]
pub struct MysqlSpool {
    /// The spool.
    pub spooling: Arc<dyn Spooling>,
    /// True if the spool answers INSERTs of sessions that do not say otherwise.
    pub by_default: bool,
}

/// The services that the frontend uses.
#[derive(Clone)]
pub struct Services {
    /// All lanes of the process.
    pub lanes: Arc<dyn Lanes>,
    /// The spool, if there is one.
    pub spool: Option<MysqlSpool>,
    /// The executor of writes with keys, if the database can keep keys.
    pub keys: Option<Keys>,
    /// The collector of traces, if there is one.
    pub tracer: Option<Tracer>,
    /// The counters.
    pub metrics: MysqlMetrics,
}
