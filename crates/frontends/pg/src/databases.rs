//! The databases that clients can name: their configuration, and their connections other than those
//! of lanes.

use windrow_core::Name;

use crate::config::{DatabaseConfig, PgConfig};
use crate::metrics::PgMetrics;
use crate::pool::Pool;
use crate::role_state::RoleStates;

/// All databases that clients can name.
pub(crate) struct Databases {
    /// The configured databases.
    pub(crate) configured: Vec<DatabaseConfig>,
    /// Server connections for statements that are not joined.
    pub(crate) pool: Pool,
    /// The server's answers about roles.
    pub(crate) role_states: RoleStates,
}

impl Databases {
    /// Returns the configured databases, without any connection.
    pub(crate) fn new(config: &PgConfig, metrics: &PgMetrics) -> Self {
        Self {
            configured: config.databases.clone(),
            pool: Pool::new(config, metrics),
            role_states: RoleStates::new(config),
        }
    }

    /// Returns the database of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&DatabaseConfig> {
        let mut databases = self.configured.iter();
        databases.find(|database| *database.name == *name)
    }

    /// Closes all idle connections to a server's database, because a client is about to drop it, or
    /// to make a change that needs exclusive use.
    pub(crate) fn close_idle(&self, is: impl Fn(&DatabaseConfig) -> bool) {
        for database in self.configured.iter().filter(|database| is(database)) {
            let name = Name::from(&*database.name);
            self.pool.clear(&name);
            self.role_states.close(&name);
        }
    }
}
