//! What statements leave behind in their session.

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
fn nothing() {
    all(
        &[
            "SELECT 1",
            "SELECT count(*), lower(a), now() FROM t WHERE x IN (1) FOR UPDATE",
            "SELECT version(), current_schema(), pg_catalog.format_type(a, b) FROM pg_type",
            "SELECT DISTINCT ON (a) a, row_number() OVER (PARTITION BY (a)) FROM t AS x (a, b) JOIN (SELECT 1) y ON (true)",
            "WITH x (a) AS (VALUES (1)) SELECT * FROM x ORDER BY (a) LIMIT (5)",
            "UPDATE t SET a = 1",
            "UPDATE t SET a = 1 WHERE id = 1",
            "DELETE FROM t",
            "COPY t TO STDOUT",
            "CREATE TABLE t (a int)",
            "DROP TABLE t",
            "VACUUM t",
            "EXPLAIN INSERT INTO t VALUES (my_function())",
            "SAVEPOINT a",
            "ROLLBACK TO a",
            "SET LOCAL x.y = 1",
            "SET TRANSACTION READ ONLY",
            "SET CONSTRAINTS ALL DEFERRED",
            "SHOW work_mem",
            "SELECT 1; SELECT 2",
        ],
        &Effect::Nothing,
    );
}

#[test]
fn values_of_sequences() {
    all(
        &[
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t SELECT 1",
            "UPDATE t SET a = DEFAULT WHERE id = 1",
            "MERGE INTO t USING x ON (t.a = x.a) WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
            "WITH x AS (INSERT INTO t (a) VALUES (1) RETURNING a) SELECT * FROM x",
            "SELECT nextval('s')",
            "COPY t FROM STDIN",
            "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
            "ALTER TABLE t ADD COLUMN a serial",
            "SELECT 1; INSERT INTO t VALUES (1)",
        ],
        &Effect::Generates,
    );
}

#[test]
fn anything() {
    all(
        &[
            "SELECT set_config('a.b', $1, false)",
            "SELECT \"set_config\"('a.b', 'c' || 'd', false)",
            "CREATE TABLE t AS SELECT set_config('a.b', 'c', false)",
            "EXPLAIN ANALYZE SELECT set_config('a.b', 'c', false)",
            "SELECT public.lower('a')",
            "SELECT pg_advisory_lock(1)",
            "SELECT setval('s', 1)",
            "SELECT my_function()",
            "INSERT INTO t VALUES (my_function())",
            "INSERT INTO t SELECT my_function()",
            "SELECT 1 INTO TEMP x",
            "SELECT * FROM pg_temp.x",
            "CREATE TEMP TABLE t (a int)",
            "CREATE TABLE t AS SELECT my_function()",
            "PREPARE p AS SELECT 1",
            "PREPARE TRANSACTION 'x'",
            "LISTEN x",
            "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
            "DO $$ BEGIN END $$",
            "CALL p()",
            "LOAD 'x'",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SET SEED TO 0.5",
            "DISCARD TEMP",
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END",
            "gibberish",
            "SELECT 'open",
        ],
        &Effect::Unknown,
    );
}

#[test]
fn a_backslash_that_may_hide_something() {
    all(
        &[r"SELECT '\x41'", r"SELECT 'a\b', lower('c')"],
        &Effect::Nothing,
    );
    // Under one setting a string, under the other a call.
    all(
        &[r"SELECT '\', set_config('a.b', 'c', false), '\''"],
        &Effect::Unknown,
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
        &Effect::Unknown,
    );
    let several = Effect::Several([Effect::Begin, Effect::Generates, Effect::End].into());
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
    all(&["SET windrow.join = on, off"], &Effect::Unknown);
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
    let several = Effect::Several([Effect::Generates, Effect::AsksForGenerated].into());
    all(&["INSERT INTO t VALUES (1); SELECT lastval()"], &several);
    all(&["", " ;; ", "-- x"], &Effect::Empty);
}
