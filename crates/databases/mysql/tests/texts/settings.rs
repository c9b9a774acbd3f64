//! A SET changes no setting that nobody follows.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windrow_mysqlwire::lane::lane_variables;
use windrow_sql::mysql::{SessionEffect, effect};

use crate::support::{Session, try_all};

/// Variables with two values that they may have.
#[rustfmt::skip]
const VARIABLES: [(&str, &str, &str); 14] = [
    ("sql_mode", "''", "'ANSI_QUOTES'"), ("time_zone", "'+00:00'", "'+05:00'"), ("wait_timeout", "100", "200"),
    ("unique_checks", "0", "on"), ("timestamp", "5", "DEFAULT"), ("insert_id", "5", "7"), ("max_error_count", "5", "7"),
    ("SQL_NOTES", "off", "1"), ("div_precision_increment", "4", "5"), ("autocommit", "1", "0"), ("`foreign_key_checks`", "(0)", "true"),
    ("optimizer_search_depth", "5", "6"), ("sql_auto_is_null", "0", "1"), ("rand_seed1", "1", "2"),
];

#[rustfmt::skip]
const SCOPES: [&str; 7] = ["", "session ", "local ", "@@", "@@session.", "@@local.", "@@Session . "];

const OTHERS: [&str; 8] = [
    "@x = 1",
    "@`x y` := (select 1)",
    "@'q' = 'a, timestamp = 5'",
    "@x.y = \"a\"",
    "names utf8mb4",
    "names 'latin1' collate 'latin1_bin'",
    "character set latin1",
    "global div_precision_increment = 4",
];

fn assignment() -> impl Strategy<Value = String> {
    let variable = (
        prop::sample::select(&SCOPES[..]),
        prop::sample::select(&VARIABLES[..]),
        prop::sample::select(&["=", " = ", " := ", "/* , */= "][..]),
        any::<bool>(),
    );
    prop_oneof![
        4 => variable.prop_map(|(scope, (name, one, other), sign, is_one)| {
            format!("{scope}{name}{sign}{}", if is_one { one } else { other })
        }),
        1 => prop::sample::select(&OTHERS[..]).prop_map(str::to_owned),
    ]
}

fn variables(session: &Session) -> BTreeMap<String, String> {
    let rows = session.rows("show session variables").unwrap();
    let pair = |row: mysql_async::Row| (row.get(0).unwrap(), row.get(1).unwrap());
    rows.into_iter().map(pair).collect()
}

#[test]
fn a_set_changes_no_setting_that_nobody_follows() {
    let session = Session::new(&[]);
    let of_lanes: Vec<_> = lane_variables(session.is_mariadb).collect();
    let fixed = "set sql_mode = 'STRICT_ALL_TABLES', time_zone = '+01:00', wait_timeout = 1000, unique_checks = 1, \
                 timestamp = 9, insert_id = 9, max_error_count = 9, sql_notes = 1, div_precision_increment = 9, autocommit = 1, \
                 foreign_key_checks = 1, optimizer_search_depth = 9, sql_auto_is_null = 0";
    let count = std::cell::Cell::new(0);
    try_all(&prop::collection::vec(assignment(), 1..4), |all| {
        let text = format!("set {}", all.join(", "));
        session.rows(fixed).unwrap();
        let modes = session.mode("STRICT_ALL_TABLES");
        let before = variables(&session);
        if session.rows(&text).is_err() {
            session.rows("set names utf8mb4").unwrap();
            return;
        }
        let after = variables(&session);
        session.rows("set names utf8mb4").unwrap();
        let changed = after
            .iter()
            .filter(|(name, value)| before.get(*name) != Some(value));
        // These count, or follow others.
        let changed: Vec<_> = changed
            .map(|(name, _)| &**name)
            .filter(|name| {
                ![
                    "pseudo_thread_id",
                    "statement_id",
                    "error_count",
                    "warning_count",
                    "character_set_database",
                    "collation_database",
                ]
                .contains(name)
            })
            .collect();
        let found = effect(&text, modes);
        count.set(count.get() + usize::from(found != SessionEffect::Unknown("not understood")));
        let is_followed = |name: &&str| of_lanes.contains(name) || *name == "transaction_isolation";
        let is_harmless =
            |name: &&str| ["wait_timeout", "optimizer_search_depth", "autocommit"].contains(name);
        match found {
            SessionEffect::Nothing => {
                assert!(changed.iter().all(is_harmless), "{text}: {changed:?}");
            }
            SessionEffect::Settings | SessionEffect::Names | SessionEffect::Collations => assert!(
                changed
                    .iter()
                    .all(|name| is_harmless(name) || is_followed(name)),
                "{text}: {changed:?}"
            ),
            SessionEffect::Unknown(_) => {}
        }
    });
    assert!(
        count.get() > 100,
        "only {} texts were understood",
        count.get()
    );
}
