//! The settings of a lane's connection: those of its clients' sessions, and those that the lane
//! needs.

use std::collections::HashMap;

use windrow_core::sink::Purpose;
use windrow_mysqlwire::LaneLogin;

/// The session's settings that the lane needs. Those that a server does not have are left out.
const FIXED: [(&str, &str); 7] = [
    ("autocommit", "1"),
    ("completion_type", "'NO_CHAIN'"),
    ("sql_auto_is_null", "0"),
    ("idle_transaction_timeout", "0"),
    ("idle_write_transaction_timeout", "0"),
    ("max_statement_time", "0"),
    ("sql_select_limit", "18446744073709551615"),
];

/// Settings that every user may make and that depend on each other: they are always made.
const TEXTS: [&str; 4] = [
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
];

/// Other variables that are read.
const ASKED: [&str; 8] = [
    "version",
    "max_allowed_packet",
    "innodb_rollback_on_timeout",
    "innodb_lock_wait_timeout",
    "log_bin",
    "binlog_format",
    "auto_increment_increment",
    "system_time_zone",
];

/// The values of a new connection's variables, by their names in lower case.
#[derive(Debug, Default)]
pub(super) struct ServerVariables {
    /// The variables that the server shows.
    pub(super) shown: HashMap<String, String>,
    /// The values of the login's variables, in their order.
    pub(super) of_login: Vec<Option<String>>,
}

impl ServerVariables {
    /// Returns the query of the variables that not every server has.
    pub(super) fn question() -> String {
        let names = FIXED.iter().map(|(name, _)| *name).chain(ASKED);
        let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
        let names = names.join(", ");
        format!("SHOW SESSION VARIABLES WHERE Variable_name IN ({names})")
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.shown.get(name).map_or("", String::as_str)
    }

    /// Returns the value that a variable of the login has in a new connection; nothing for NULL.
    pub(super) fn of_new_connection(&self, login: &LaneLogin, name: &str) -> &str {
        let place = login.variables.iter().position(|(known, _)| *known == name);
        let value = place.and_then(|at| self.of_login.get(at)?.as_deref());
        value.unwrap_or_default()
    }

    /// Returns the statement that sets the character sets of a session, as nearly all sessions set
    /// theirs: it also sets the collation of parameters, which no variable shows. `None` if they
    /// are not of one kind.
    pub(super) fn names(login: &LaneLogin) -> Option<String> {
        let charset = login.variable("character_set_connection")?;
        let collation = login.variable("collation_connection")?;
        let is_one = login.variable("character_set_client") == Some(charset);
        let names = || {
            let (charset, collation) = (literal(Some(charset)), literal(Some(collation)));
            format!("SET NAMES {charset} COLLATE {collation}")
        };
        (is_one && collation.starts_with(charset)).then(names)
    }

    /// Returns the statement that sets up a session. A setting that is as wanted is left out: not
    /// every user may make each.
    pub(super) fn settings(&self, login: &LaneLogin, wait: Option<u64>) -> String {
        let mut sql = "SET ".to_owned();
        let has_names = Self::names(login).is_some();
        for (at, (name, value)) in login.variables.iter().enumerate() {
            let value = value.as_deref();
            let is_isolation = matches!(*name, "tx_isolation" | "transaction_isolation");
            let is_wait = *name == "innodb_lock_wait_timeout" && wait.is_some();
            let own = self.of_login.get(at).map(Option::as_deref);
            let is_as_wanted = own == Some(value) && !TEXTS.contains(name);
            let is_named = has_names && TEXTS.contains(name) && *name != "character_set_results";
            if !is_isolation && !is_wait && !is_as_wanted && !is_named {
                push(&mut sql, name, &literal(value));
            }
        }
        for (name, value) in FIXED {
            if self.shown.contains_key(name) {
                push(&mut sql, name, value);
            }
        }
        if let Some(wait) = wait {
            let wait = wait.to_string();
            push(&mut sql, "innodb_lock_wait_timeout", &wait);
            push(&mut sql, "lock_wait_timeout", &wait);
        }
        sql
    }

    /// Returns the statement that sets the isolation. A statement sees all earlier commits and
    /// locks no gaps; a single-row write does the same with any isolation. A binary log of
    /// statements does not allow that.
    pub(super) fn isolation(&self, purpose: Purpose) -> Option<&'static str> {
        let by_statement =
            matches!(self.get("log_bin"), "ON" | "1") && self.get("binlog_format") == "STATEMENT";
        (purpose == Purpose::Batches && !by_statement)
            .then_some("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    }
}

/// Returns the lock timeout of a connection for batches, in seconds; `None` if the client's own
/// counts.
pub(super) fn lock_wait(purpose: Purpose, limit: std::time::Duration) -> Option<u64> {
    // Whole seconds, rounded up: 0 would not wait at all.
    let wait = limit.as_millis().div_ceil(1000).clamp(1, 86_400);
    let wait = u64::try_from(wait).unwrap_or(1);
    (purpose == Purpose::Batches).then_some(wait)
}

/// Returns the literal of a variable's value.
pub(super) fn literal(value: Option<&str>) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match value {
        None => "NULL".to_owned(),
        Some(number) if is_number(number) => number.to_owned(),
        Some(text) => format!("'{}'", text.replace('\\', "").replace('\'', "''")),
    }
}

fn push(sql: &mut String, name: &str, value: &str) {
    let comma = if sql.ends_with("SET ") { "" } else { ", " };
    sql.push_str(&format!("{comma}SESSION {name} = {value}"));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windrow_mysqlwire::Credential;

    use super::*;

    fn login(variables: &[(&'static str, Option<&str>)]) -> LaneLogin {
        LaneLogin {
            user: b"app"[..].into(),
            credential: Credential::Password("".into()),
            database: None,
            counts_found_rows: false,
            ignores_space: false,
            has_extended_metadata: false,
            variables: variables
                .iter()
                .map(|(n, v)| (*n, v.map(Into::into)))
                .collect(),
        }
    }

    fn server(pairs: &[(&str, &str)]) -> ServerVariables {
        let pairs = pairs.iter();
        ServerVariables {
            shown: pairs.map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            of_login: Vec::new(),
        }
    }

    #[test]
    fn a_setting_that_is_as_wanted_is_left_out() {
        let login = login(&[
            ("character_set_results", None),
            ("max_error_count", Some("1024")),
            ("sql_notes", Some("0")),
            ("time_zone", Some("it's")),
            ("tx_isolation", Some("SERIALIZABLE")),
        ]);
        let mut server = server(&[("autocommit", "ON")]);
        let own = [None, Some("1024"), Some("1"), Some("SYSTEM"), None];
        server.of_login = own.map(|value| value.map(str::to_owned)).into();
        let expected = "SET SESSION character_set_results = NULL, SESSION sql_notes = 0, \
                        SESSION time_zone = 'it''s', SESSION autocommit = 1";
        assert_eq!(server.settings(&login, None), expected);
    }

    #[test]
    fn character_sets_of_one_kind_are_set_together() {
        let of = |client, collation| {
            let login = login(&[
                ("character_set_client", Some(client)),
                ("character_set_connection", Some("latin1")),
                ("character_set_results", None),
                ("collation_connection", Some(collation)),
            ]);
            let names = ServerVariables::names(&login);
            (names, server(&[]).settings(&login, None))
        };
        let (names, rest) = of("latin1", "latin1_bin");
        assert_eq!(names.unwrap(), "SET NAMES 'latin1' COLLATE 'latin1_bin'");
        assert_eq!(rest, "SET SESSION character_set_results = NULL");
        let (names, rest) = of("utf8mb4", "latin1_bin");
        assert_eq!(
            (names, rest.contains("character_set_client = 'utf8mb4'")),
            (None, true)
        );
    }

    #[test]
    fn a_batch_waits_for_locks_for_a_short_time() {
        let wait = lock_wait(Purpose::Batches, Duration::from_millis(50));
        assert_eq!(wait, Some(1));
        let login = login(&[("innodb_lock_wait_timeout", Some("50"))]);
        let sql = server(&[]).settings(&login, wait);
        assert_eq!(
            sql,
            "SET SESSION innodb_lock_wait_timeout = 1, SESSION lock_wait_timeout = 1"
        );
        assert_eq!(lock_wait(Purpose::LockWait, Duration::from_secs(1)), None);
        let sql = server(&[]).settings(&login, None);
        assert_eq!(sql, "SET SESSION innodb_lock_wait_timeout = 50");
    }

    #[test]
    fn a_log_of_statements_allows_one_isolation_only() {
        let of = |format| {
            server(&[("log_bin", "ON"), ("binlog_format", format)]).isolation(Purpose::Batches)
        };
        assert_eq!(of("STATEMENT"), None);
        assert!(of("MIXED").is_some());
        assert_eq!(server(&[]).isolation(Purpose::LockWait), None);
    }
}
