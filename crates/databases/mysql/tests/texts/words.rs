//! The words and functions that the server has.

use mysql_async::Row;
use windrow_mysqlwire::lane::lane_variables;
use windrow_sql::mysql::{effect, harmless_functions, read};

use crate::support::Session;

/// A text that the server cannot parse.
const SYNTAX: u16 = 1064;
/// A function that the server does not have.
const NO_FUNCTION: [u16; 2] = [1305, 1630];

#[test]
fn a_word_that_the_server_reserves_is_no_name() {
    let session = Session::new(&[]);
    let modes = session.mode("");
    let words = session.rows("select lower(word) from information_schema.keywords");
    let words = words
        .unwrap()
        .into_iter()
        .map(|row: Row| row.get::<String, _>(0).unwrap());
    let mut count = 0;
    for word in words.filter(|word| {
        word.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    }) {
        count += 1;
        for text in [
            format!("insert into {word} (a) values (1)"),
            format!("insert into absent ({word}) values (1)"),
            format!("insert into absent set {word} = 1"),
            format!("update absent set {word} = 1 where a = 1"),
            format!("update absent set a = 1 where {word} = 1"),
            format!("delete from {word} where a = 1"),
        ] {
            let is_refused = session.rows(&text) == Err(SYNTAX);
            assert!(!is_refused || read(&text, modes).is_err(), "{text}");
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn harmless_functions_are_those_of_the_server() {
    let session = Session::new(&[]);
    let modes = session.mode("");
    for function in harmless_functions(modes) {
        let error = session
            .rows(&format!("select {function}()"))
            .err()
            .unwrap_or_default();
        assert!(!NO_FUNCTION.contains(&error), "{function}: {error}");
    }
}

#[test]
fn settings_that_are_asked_for_again_are_those_of_lanes() {
    let session = Session::new(&[]);
    let modes = session.mode("");
    let of_lanes: Vec<_> = lane_variables(session.is_mariadb).collect();
    let names = session.rows("show session variables").unwrap();
    for name in names
        .into_iter()
        .map(|row: Row| row.get::<String, _>(0).unwrap())
    {
        let found = effect(&format!("set session {name} = 1"), modes);
        let is_of_lanes = of_lanes.contains(&&*name);
        // MariaDB has this variable twice.
        let is_alias = session.is_mariadb && name == "transaction_isolation";
        assert_eq!(found.changes_settings(), is_of_lanes || is_alias, "{name}");
    }
}
