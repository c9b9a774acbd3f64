//! Effects of statements on their session.

use windrow_sql::{Effect, read};

fn effect(text: &str) -> Effect {
    read(text, &[]).effect()
}

#[track_caller]
fn all(texts: &[&str], expected: &Effect) {
    for text in texts {
        assert_eq!(&effect(text), expected, "{text}");
    }
}

#[test]
fn most_texts_do_not_say_all_that_they_do() {
    all(
        &[
            "SELECT 1",
            "SELECT set_config('a.b', $1, false)",
            "CREATE TABLE t AS SELECT set_config('a.b', 'c', false)",
            "EXPLAIN ANALYZE SELECT set_config('a.b', 'c', false)",
            "INSERT INTO t VALUES (my_function())",
            "CREATE TEMP TABLE t (a int)",
            "PREPARE p AS SELECT 1",
            "LISTEN x",
            "SAVEPOINT a",
            "ROLLBACK TO a",
            "SET LOCAL x.y = 1",
            "SET TRANSACTION READ ONLY",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SET CONSTRAINTS ALL DEFERRED",
            "SHOW work_mem",
            "DISCARD TEMP",
            "SELECT 1; INSERT INTO t VALUES (1)",
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END",
            "gibberish",
            "SELECT 'open",
        ],
        &Effect::Other,
    );
    all(&["SET SEED TO 0.5"], &Effect::Seed);
}

#[test]
fn a_backslash_that_may_hide_something() {
    // Under one setting a string, under the other a call.
    all(
        &[r"SELECT set_config('a.b', '\', false) -- ')"],
        &Effect::Other,
    );
}

#[test]
fn transactions() {
    all(
        &[
            "BEGIN",
            "begin isolation level serializable",
            "START TRANSACTION",
            "COMMIT AND CHAIN",
            "ROLLBACK WORK AND CHAIN",
        ],
        &Effect::Begin,
    );
    all(
        &[
            "COMMIT",
            "END",
            "ROLLBACK;",
            "ABORT WORK",
            "COMMIT TRANSACTION AND NO CHAIN",
        ],
        &Effect::End,
    );
    all(
        &["COMMIT PREPARED 'x'", "ROLLBACK PREPARED 'x'"],
        &Effect::Other,
    );
    let several = Effect::Several([Effect::Begin, Effect::Other, Effect::End].into());
    all(&["BEGIN; INSERT INTO t VALUES (1); COMMIT;"], &several);
}

#[test]
fn settings() {
    let set = |name: &str, set| Effect::Set {
        name: name.into(),
        set,
    };
    for (text, name, value) in [
        ("SET work_mem = '1MB'", "work_mem", true),
        ("SET SESSION search_path TO a, \"B\"", "search_path", true),
        ("SET \"Work_Mem\" TO DEFAULT", "work_mem", false),
        ("RESET work_mem;", "work_mem", false),
        ("SET my.Setting = 1", "my.setting", true),
        ("SET TIME ZONE 'UTC'", "timezone", true),
        ("SET TIME ZONE LOCAL", "timezone", false),
        ("RESET TIME ZONE", "timezone", false),
        ("SET NAMES 'latin1'", "client_encoding", true),
        ("SET SCHEMA 'x'", "search_path", true),
        ("SET ROLE r", "role", true),
        ("SET ROLE NONE", "role", false),
        ("SET SESSION AUTHORIZATION r", "session_authorization", true),
        (
            "RESET SESSION AUTHORIZATION",
            "session_authorization",
            false,
        ),
    ] {
        assert_eq!(effect(text), set(name, value), "{text}");
    }
    all(&["RESET ALL"], &Effect::ResetAll);
    all(&["DISCARD ALL"], &Effect::DiscardAll);
}

#[test]
fn settings_of_windrow() {
    let own = |value: Option<&str>| Effect::SetWindrow {
        name: "join".into(),
        value: value.map(Into::into),
    };
    for (text, value) in [
        ("SET windrow.join = off", Some("off")),
        ("SET WINDROW.Join TO OFF", Some("off")),
        ("SET windrow.join = 'off'", Some("off")),
        ("SET windrow.join = 1;", Some("1")),
        ("SET windrow.join = DEFAULT", None),
        ("RESET windrow.join", None),
    ] {
        assert_eq!(effect(text), own(value), "{text}");
    }
    all(
        &["SHOW windrow.join"],
        &Effect::ShowWindrow {
            name: "join".into(),
        },
    );
    all(&["SET windrow.join = on, off"], &Effect::Other);
}

#[test]
fn questions_for_generated_values() {
    all(
        &["SELECT lastval()", "select LASTVAL ( ) ;"],
        &Effect::Lastval,
    );
    all(
        &["SELECT currval($1)", "SELECT currval($1::regclass)"],
        &Effect::Currval(None),
    );
    all(
        &[
            "SELECT currval('s.\"T_seq\"')",
            "select currval('s.\"T_seq\"'::regclass);",
        ],
        &Effect::Currval(Some("s.\"T_seq\"".into())),
    );
    all(
        &[
            "SELECT lastval() AS id",
            "CREATE TABLE t AS SELECT lastval()",
            "CREATE MATERIALIZED VIEW v AS SELECT currval('s')",
            "SELECT currval(pg_get_serial_sequence('t', 'id'))",
            "SELECT * FROM t WHERE id = currval('s')",
            "INSERT INTO t VALUES (lastval())",
            "EXPLAIN ANALYZE SELECT lastval()",
        ],
        &Effect::AsksForGenerated,
    );
    let several = Effect::Several([Effect::Other, Effect::AsksForGenerated].into());
    all(&["INSERT INTO t VALUES (1); SELECT lastval()"], &several);
    all(&["", " ;; ", "-- x"], &Effect::Empty);
}
