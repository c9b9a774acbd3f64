//! The login of a lane: as whom its connections write, and under which session settings.

use std::fmt;

use crate::auth::Credential;

/// The system variables of a session that decide what a single-row write does, apart from those
/// that stop its writes from being joined. Those that a server does not have are left out.
pub const LANE_VARIABLES: [&str; 22] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "character_set_client",
    "character_set_results",
    "check_constraint_checks",
    "collation_connection",
    "default_week_format",
    "div_precision_increment",
    "explicit_defaults_for_timestamp",
    "foreign_key_checks",
    "innodb_lock_wait_timeout",
    "innodb_strict_mode",
    "lc_messages",
    "lc_time_names",
    "max_error_count",
    "old_mode",
    "sql_mode",
    "sql_notes",
    "sql_safe_updates",
    "time_zone",
    "tx_isolation",
    "unique_checks",
];

/// As whom the connections of a lane log in, and the settings of their sessions. Sessions with
/// equal logins share a lane.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LaneLogin {
    /// The user's name.
    pub user: Box<[u8]>,
    /// The credential for the server.
    pub credential: Credential,
    /// The default database; `None` if the session has none.
    pub database: Option<Box<str>>,
    /// True if an UPDATE counts the rows that it finds, and not only those that it changes
    /// (`CLIENT_FOUND_ROWS`).
    pub counts_found_rows: bool,
    /// True if a space may stand between a function's name and its parenthesis
    /// (`CLIENT_IGNORE_SPACE`).
    pub ignores_space: bool,
    /// The values of [`LANE_VARIABLES`] that the server has, as it shows them, in their order.
    pub variables: Box<[(&'static str, Box<str>)]>,
}

impl LaneLogin {
    /// Returns the value of a variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| &**value)
    }
}

impl fmt::Debug for LaneLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneLogin")
            .field("user", &String::from_utf8_lossy(&self.user))
            .field("database", &self.database)
            .field("variables", &self.variables)
            .finish_non_exhaustive()
    }
}
