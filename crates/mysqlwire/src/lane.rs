//! The login of a lane: the user of its connections, and their session settings.

use std::fmt;

use crate::auth::Credential;

/// The system variables of a session on which the effect of a single-row write depends. MySQL and
/// MariaDB both have them.
const LANE_VARIABLES: [&str; 21] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "default_week_format",
    "div_precision_increment",
    "explicit_defaults_for_timestamp",
    "foreign_key_checks",
    "innodb_lock_wait_timeout",
    "lc_messages",
    "lc_time_names",
    "max_error_count",
    "session_track_transaction_info",
    "sql_mode",
    "sql_notes",
    // This variable decides how names are quoted in errors of foreign keys.
    "sql_quote_show_create",
    "sql_safe_updates",
    "time_zone",
    "unique_checks",
];

/// The variables that only MariaDB has.
const MARIADB_VARIABLES: [&str; 3] = ["check_constraint_checks", "old_mode", "tx_isolation"];

/// The variables that only MySQL has.
const MYSQL_VARIABLES: [&str; 2] = ["session_track_gtids", "transaction_isolation"];

/// Returns the names of the variables that a [`LaneLogin`] holds, in their order.
pub fn lane_variables(is_mariadb: bool) -> impl Iterator<Item = &'static str> {
    let own: &[&str] = match is_mariadb {
        true => &MARIADB_VARIABLES,
        false => &MYSQL_VARIABLES,
    };
    LANE_VARIABLES.into_iter().chain(own.iter().copied())
}

/// Returns the query of a session's database and of variables, in one row.
pub fn lane_question<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.fold("SELECT DATABASE()".to_owned(), |text, name| {
        text + ", @@SESSION." + name
    })
}

/// A system variable and its value; `None` is NULL.
pub type LaneVariable = (&'static str, Option<Box<str>>);

/// The login of a lane's connections, and the settings of their sessions. Sessions with equal
/// logins share a lane.
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
    /// True if a space may be between a function's name and its parenthesis
    /// (`CLIENT_IGNORE_SPACE`).
    pub ignores_space: bool,
    /// True if columns are described with more facts (`MARIADB_CLIENT_EXTENDED_METADATA`).
    pub has_extended_metadata: bool,
    /// The values of [`lane_variables`], as the server returns them, in their order; `None` is
    /// NULL. After the login, a connection sets only those that differ from its own, because
    /// ordinary users may not set all of them.
    pub variables: Box<[LaneVariable]>,
}

impl LaneLogin {
    /// Returns true if reports of success tell the session more than the write's own facts.
    pub fn tracks_transactions(&self) -> bool {
        let names = ["session_track_gtids", "session_track_transaction_info"];
        let values = names.iter().filter_map(|name| self.variable(name));
        values.into_iter().any(|value| value != "OFF")
    }

    /// Returns the value of a variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| *known == name);
        found?.1.as_deref()
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
