//! Sets all variables of a connection that the sink's own statements rely on.
//!
//! Variables that only affect a client's own values (rounding of divisions, strict modes, steps of
//! AUTO_INCREMENT) keep the server's values: they do the same for a write by itself.

use std::collections::HashMap;

use mysql_async::Row;
use windrow_core::sink::Purpose;

use crate::values::cell::get;

/// The first statement of a connection: a limit of rows would cut later answers.
pub(super) const FIRST: &str = "SET sql_select_limit = 18446744073709551615, \
    max_join_size = 18446744073709551615, sql_big_selects = 1";

/// Settings and their values, in their order. Settings that a server does not have are left out.
const FIXED: [(&str, &str); 21] = [
    ("autocommit", "1"),
    ("completion_type", "'NO_CHAIN'"),
    ("sql_select_limit", "18446744073709551615"),
    // Setting the first one changes the second.
    ("max_join_size", "18446744073709551615"),
    ("sql_big_selects", "1"),
    ("sql_safe_updates", "0"),
    ("sql_auto_is_null", "0"),
    ("foreign_key_checks", "1"),
    ("unique_checks", "1"),
    ("check_constraint_checks", "1"),
    ("time_zone", "'+00:00'"),
    // The texts of errors name the key and the row.
    ("lc_messages", "'en_US'"),
    // MariaDB adds notes for values that it stores unchanged. MySQL adds notes only for values that
    // a strict mode refuses.
    ("sql_notes", "0"),
    ("max_error_count", "1024"),
    ("sql_quote_show_create", "1"),
    // The server would convert a long list of keys to a subquery.
    ("in_predicate_conversion_threshold", "0"),
    ("idle_transaction_timeout", "0"),
    ("idle_readonly_transaction_timeout", "0"),
    ("idle_write_transaction_timeout", "0"),
    ("max_statement_time", "0"),
    ("max_execution_time", "0"),
];

/// The variables that limit the time of a statement. The server's limit is for one write, and not
/// for many.
const TIMES: [&str; 2] = ["max_statement_time", "max_execution_time"];

/// Other variables that are read.
const ASKED: [&str; 7] = [
    "version",
    "max_allowed_packet",
    "innodb_rollback_on_timeout",
    "sql_mode",
    "old_mode",
    "log_bin",
    "binlog_format",
];

/// Parts of `sql_mode` that change how the server parses SQL, or hide what this sink reads.
const READS_OTHERWISE: [&str; 18] = [
    "ANSI",
    "ANSI_QUOTES",
    "DB2",
    "HIGH_NOT_PRECEDENCE",
    "IGNORE_SPACE",
    "MAXDB",
    "MSSQL",
    "MYSQL323",
    "MYSQL40",
    "NO_BACKSLASH_ESCAPES",
    "NO_FIELD_OPTIONS",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "ORACLE",
    "PAD_CHAR_TO_FULL_LENGTH",
    "PIPES_AS_CONCAT",
    "POSTGRESQL",
    "REAL_AS_FLOAT",
];

/// The values of the server's variables.
#[derive(Debug, Default)]
pub(super) struct Variables(HashMap<String, String>);

impl Variables {
    /// Returns the query of the variables.
    pub(super) fn question() -> String {
        let names = FIXED.iter().map(|(name, _)| *name).chain(ASKED);
        let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
        let names = names.join(", ");
        format!("SHOW SESSION VARIABLES WHERE Variable_name IN ({names})")
    }

    pub(super) fn read(rows: &[Row]) -> Self {
        let pair = |row: &Row| {
            let name: String = get(row, 0)?;
            Some((name.to_ascii_lowercase(), get(row, 1).unwrap_or_default()))
        };
        Self(rows.iter().filter_map(pair).collect())
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(self.get(name), "ON" | "1")
    }

    /// Has the server store given zeros of AUTO_INCREMENT columns as zeros.
    pub(super) fn keep_zeros(&mut self) {
        let mode = format!("{},NO_AUTO_VALUE_ON_ZERO", self.get("sql_mode"));
        let mode = mode.trim_start_matches(',').to_owned();
        self.0.insert("sql_mode".to_owned(), mode);
    }

    /// Returns the value that a setting gets; `None` leaves it as it is. An ordinary user of MySQL
    /// may not change the number of warnings that the server keeps, which is 1024 there.
    fn wanted(&self, name: &str, fixed: &'static str) -> Option<&'static str> {
        let is_mysql = !self.get("version").contains("MariaDB");
        match name {
            "max_error_count" if is_mysql => None,
            "sql_notes" if is_mysql => Some("1"),
            _ => Some(fixed),
        }
    }

    /// Returns the statements that set up a connection. `wait` is the lock timeout in seconds.
    pub(super) fn settings(&self, purpose: Option<Purpose>, wait: Option<u64>) -> String {
        // Each statement of a transaction sees all earlier commits. A binary log of statements does
        // not allow that.
        let by_statement = self.is_on("log_bin") && self.get("binlog_format") == "STATEMENT";
        let isolation = match by_statement {
            true => "REPEATABLE READ",
            false => "READ COMMITTED",
        };
        let mut sql = format!(
            "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci; \
             SET SESSION TRANSACTION ISOLATION LEVEL {isolation}, READ WRITE; SET sql_mode = '{}'",
            without(self.get("sql_mode"), &READS_OTHERWISE)
        );
        if self.0.contains_key("old_mode") {
            // The number of warnings counts the rows that were left out for their keys.
            let hides = ["NO_DUP_KEY_WARNINGS_WITH_IGNORE"];
            let rest = without(self.get("old_mode"), &hides);
            sql.push_str(&format!(", old_mode = '{rest}'"));
        }
        let alone = purpose == Some(Purpose::LockWait);
        for (name, value) in FIXED {
            let is_known = self.0.contains_key(name);
            if let (true, Some(value)) = (is_known, self.wanted(name, value))
                && !(alone && TIMES.contains(&name))
            {
                sql.push_str(&format!(", {name} = {value}"));
            }
        }
        if let Some(wait) = wait {
            sql.push_str(&format!(
                ", innodb_lock_wait_timeout = {wait}, lock_wait_timeout = {wait}"
            ));
        }
        sql
    }
}

/// Returns a list of flags without some of them.
fn without(flags: &str, unwanted: &[&str]) -> String {
    let kept = flags
        .split(',')
        .filter(|flag| !unwanted.contains(&&*flag.trim().to_ascii_uppercase()));
    // The server's own words have no characters that need quoting.
    let plain = kept.map(|flag| flag.replace(['\'', '\\'], ""));
    plain.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(pairs: &[(&str, &str)]) -> Variables {
        let pairs = pairs.iter();
        Variables(
            pairs
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn strictness_stays_and_readings_go() {
        let mode = "PIPES_AS_CONCAT,ANSI_QUOTES,STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO";
        let sql = known(&[("sql_mode", mode)]).settings(None, None);
        assert!(
            sql.contains("sql_mode = 'STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO'"),
            "{sql}"
        );
    }

    #[test]
    fn only_what_the_server_knows_is_set() {
        let server = known(&[("foreign_key_checks", "OFF"), ("max_statement_time", "1")]);
        let of = |purpose| server.settings(Some(purpose), Some(1));
        assert!(of(Purpose::Batches).contains("foreign_key_checks = 1, max_statement_time = 0"));
        assert!(!of(Purpose::LockWait).contains("max_statement_time"));
        assert!(!of(Purpose::LockWait).contains("check_constraint_checks"));
    }

    #[test]
    fn an_ordinary_user_of_mysql_may_make_all_settings() {
        let of = |version| {
            let server = known(&[
                ("version", version),
                ("max_error_count", "64"),
                ("sql_notes", "ON"),
            ]);
            server.settings(None, None)
        };
        assert!(of("11.8.9-MariaDB").contains(", sql_notes = 0, max_error_count = 1024"));
        assert!(of("9.7.4").ends_with(", sql_notes = 1"));
    }

    #[test]
    fn a_log_of_statements_allows_one_isolation_only() {
        let of =
            |format| known(&[("log_bin", "ON"), ("binlog_format", format)]).settings(None, None);
        assert!(of("STATEMENT").contains("REPEATABLE READ"));
        assert!(of("MIXED").contains("READ COMMITTED"));
    }
}
