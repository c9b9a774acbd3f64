//! The ports of the frontend: what it needs and others give.

use std::sync::Arc;

use windrow_core::{Fault, LanePorts, Tracer};
use windrow_mysqlwire::LaneLogin;

use crate::metrics::MysqlMetrics;

/// All lanes of the process.
pub trait Lanes: Send + Sync + 'static {
    /// Returns the ports of the lane of a login, which is started if there is none.
    ///
    /// # Errors
    /// There are too many lanes. A database that is away is no error here: the lane's writes get
    /// it.
    fn open(&self, login: &LaneLogin) -> Result<LanePorts, Fault>;

    /// Ends the lanes of a user whose login is not admitted any more.
    fn revoke(&self, user: &[u8]);
}

/// The services that the frontend uses.
#[derive(Clone)]
pub struct Services {
    /// All lanes of the process.
    pub lanes: Arc<dyn Lanes>,
    /// The collector of traces, if there is one.
    pub tracer: Option<Tracer>,
    /// Where it counts.
    pub metrics: MysqlMetrics,
}
