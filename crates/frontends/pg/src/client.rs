//! The identity of a client, and the settings under which its statements run.

use std::sync::Arc;

use windrow_core::Name;

/// The identity of a client at the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The name under which clients know the database ([`crate::DatabaseConfig::name`]).
    pub database: Name,
    /// The role.
    pub role: Name,
}

/// Session settings that change what statements mean. Two sessions with equal settings may share a
/// lane.
///
/// `application_name` is not included: it does not change any meaning, and every program would have
/// a lane of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Run-time parameters of the startup packet (`client_encoding`, `TimeZone`, `search_path`,
    /// `options` ...), sorted by name.
    pub startup: Arc<[(Name, Name)]>,
    /// The SET statements in force, as the client wrote them, in an order that gives the same
    /// result: one for each setting, sorted by the setting's name; SET ROLE and SET SESSION
    /// AUTHORIZATION come first.
    pub set: Arc<[(Name, Name)]>,
    /// The version of the role and its settings at the server with which the session began.
    pub version: u64,
}

impl Settings {
    /// Returns the settings that the session began with.
    pub(crate) fn at_start(&self) -> Self {
        Self {
            startup: Arc::clone(&self.startup),
            set: Arc::default(),
            version: self.version,
        }
    }
}
