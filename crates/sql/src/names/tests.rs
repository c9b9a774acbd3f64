use super::*;

fn list(names: &[Box<str>]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}

#[test]
fn all_that_a_text_names_is_found_once() {
    let names = names(
        "SELECT a.Total, \"Odd\" (1), f(x) FROM s.t AS a WHERE x @@ 'a;b' AND y = $1; call p()",
    )
    .unwrap();
    assert_eq!(
        list(&names.all),
        ["Odd", "a", "call", "f", "p", "s", "t", "total", "x", "y"]
    );
    assert_eq!(list(&names.called), ["Odd", "f", "p"]);
    assert_eq!(list(&names.operators), ["=", "@@"]);
    assert_eq!(list(&names.verbs), ["call", "select"]);
    assert!(names.has("total") && names.calls("f") && !names.calls("x"));
    assert!(names.begins_with(&["call"]) && !names.begins_with(&["do"]));
}

#[test]
fn what_only_defines_reaches_nothing() {
    for text in [
        "create or replace function f(a int default g()) returns trigger language plpgsql as $$x$$",
        "create constraint trigger c after insert on t for each row when (g()) execute function f()",
        "create trigger c before insert or update on t for each row execute procedure f()",
        "create table t (id int default g() check (g() > 0), n bigint generated always as identity)",
        "create view v as select f()",
        "drop function if exists f()",
        "alter function f() strict",
        "comment on table t is 'x'",
        "grant insert on t to u",
    ] {
        let names = names(text).unwrap();
        assert_eq!(list(&names.reached), [""; 0], "{text}");
        assert_eq!(list(&names.called), [""; 0], "{text}");
        assert!(names.all.len() > 1, "{text}");
    }
    for (text, reached) in [
        ("create table t as select f()", &["f"][..]),
        (
            "create table t partition of p for values from (f()) to (2)",
            &["f"],
        ),
        (
            "create table t (a int, b int generated always as (f(a)) stored)",
            &["f"],
        ),
        ("create index i on t (f(a))", &["f", "t"]),
        ("alter table t add a int default f()", &["f", "t"]),
        ("alter domain d add check (f(value))", &["f"]),
        (
            "create table t (a int); insert into u values (f())",
            &["f", "u"],
        ),
        ("select f(); drop table t", &["f"]),
        ("create extension e", &["e"]),
        (
            "create function f() begin atomic select g(); select h(); end",
            &["h"],
        ),
    ] {
        let names = names(text).unwrap();
        for name in reached {
            assert!(names.reaches(name), "{name} in {text}");
        }
    }
}

#[test]
fn a_change_of_what_has_run_is_seen_in_its_place() {
    for text in [
        "select f(); drop function f",
        "begin; insert into t values (1); alter table t disable trigger all; commit",
        "select f(); create or replace function f() returns int language sql as 'select 1'",
        "create function f() returns int language sql as 'select 1'; select f(); rollback",
        "select 1 operator(s.+) 2; revoke usage on schema s from u",
        "select f(); do $$ begin end $$",
        "insert into t values (1); discard temp",
    ] {
        assert!(names(text).unwrap().has_late_change, "{text}");
    }
    for text in [
        "drop function f; select f()",
        "begin; insert into t values (1); rollback",
        "insert into t values (1); create table u (id int)",
        "insert into t values (1); rollback to a; select 1",
        "select f()",
        "create table t (id int); create index on t (id)",
    ] {
        assert!(!names(text).unwrap().has_late_change, "{text}");
    }
}

#[test]
fn literals_make_no_difference_and_riddles_are_not_guessed() {
    let of = |text| names(text);
    assert_eq!(of("select 1 from t"), of("SELECT 22 FROM t"));
    assert_eq!(of("select U&\"d!0061t\" from t"), None);
    assert_eq!(of("select 'open"), None);
    assert_eq!(names(&format!("select {}", "a".repeat(64))), None);
    // Either end of a string.
    assert_eq!(of(r"select 'a\', f(1), 'b'"), None);
    assert!(of(r"select 'a\', f(1), 'b\'").is_none_or(|names| names.calls("f")));
}

#[test]
fn what_ends_with_the_transaction_is_told_apart() {
    for (text, local, calls) in [
        ("SET LOCAL app.Tenant = '1'", &["app.tenant"][..], false),
        ("set local work_mem = '1MB'", &["work_mem"], false),
        ("set local role a", &["role"], false),
        ("select set_config('App.a', $1, true)", &["app.a"], false),
        (
            "select set_config('a.b', f(1, ')'), TRUE), pg_catalog.set_config('c.d', $1, true)",
            &["a.b", "c.d"],
            false,
        ),
        ("select set_config('role', $1, true)", &["role"], false),
        ("select set_config('a.b', $1, $2)", &[], true),
        ("select set_config($1, $2, true)", &[], true),
        ("select set_config('a.b', '1', false)", &[], true),
        (
            "select set_config('a.b', '1', true), set_config('a', '1', false)",
            &["a.b"],
            true,
        ),
        ("select set_config('a.b', '1', true or false)", &[], true),
        ("select other.set_config('a.b', '1', true)", &[], true),
    ] {
        let names = names(text).unwrap();
        assert_eq!(list(&names.local), local, "{text}");
        assert_eq!(names.calls("set_config"), calls, "{text}");
    }
}

#[test]
fn values_are_taken_by_functions_and_by_defaults() {
    for text in [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = DEFAULT WHERE id = 1",
        "MERGE INTO t USING x ON (t.a = x.a) WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
        "WITH x AS (INSERT INTO t (a) VALUES (1) RETURNING a) SELECT * FROM x",
        "WITH x AS (UPDATE t SET a = DEFAULT RETURNING a) SELECT * FROM x",
        "SELECT nextval('s')",
        "SELECT pg_catalog.setval('s', 1)",
        "CREATE TABLE t AS SELECT nextval('s')",
        "COPY t FROM STDIN",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
        "ALTER TABLE t ADD COLUMN a serial",
        "SELECT 1; INSERT INTO t VALUES (1)",
        "EXPLAIN ANALYZE EXECUTE p",
        "CREATE TABLE t AS EXECUTE p",
    ] {
        assert!(names(text).unwrap().may_generate, "{text}");
    }
    for text in [
        "SELECT 1 FROM t FOR UPDATE",
        "UPDATE t SET a = 1 WHERE id = 1",
        "DELETE FROM t",
        "COPY t TO STDOUT",
        "COPY (SELECT 1 FROM t) TO STDOUT",
        "CREATE TABLE t (a serial, b int default nextval('s'))",
        "CREATE INDEX i ON t (f(a))",
        "DROP TABLE t; SELECT 'nextval('",
        "BEGIN; UPDATE t SET a = 1; COMMIT",
    ] {
        assert!(!names(text).unwrap().may_generate, "{text}");
    }
}

#[test]
fn a_select_into_makes_a_table() {
    for text in [
        "SELECT 1 INTO x",
        "WITH a AS (SELECT 1) SELECT * INTO TEMP x FROM a",
        "SELECT insert INTO x FROM t",
        "BEGIN; SELECT 1 INTO x; COMMIT",
    ] {
        let names = names(text).unwrap();
        assert!(names.changes_catalog() && names.writes(), "{text}");
    }
    for text in [
        "INSERT INTO t VALUES (1)",
        "WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a",
        "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
        "MERGE INTO t USING x ON true WHEN MATCHED THEN DELETE",
        "EXPLAIN INSERT INTO t VALUES (1)",
    ] {
        assert!(!names(text).unwrap().changes_catalog(), "{text}");
    }
}

#[test]
fn texts_that_write_are_distinguished_from_texts_that_read() {
    for text in [
        "select 1",
        "(table t)",
        "with a as (select 1) select * from a",
        "begin; select 1; commit",
        "set timezone = 'UTC'",
        "show timezone",
    ] {
        assert!(!names(text).unwrap().writes(), "{text}");
    }
    for text in [
        "with a as (delete from t returning 1) select * from a",
        "select * from t for update",
        "insert into t values (1)",
        "copy t to stdout",
        "begin; truncate t; commit",
    ] {
        assert!(names(text).unwrap().writes(), "{text}");
    }
}

#[test]
fn state_that_postgresql_shows_to_its_session_is_found() {
    for text in [
        "create temp table t ()",
        "create table pg_temp.t ()",
        "select pg_try_advisory_lock(1)",
        "declare c cursor with hold for select 1",
        "listen c",
        "prepare p as select 1",
    ] {
        assert!(names(text).unwrap().keeps(), "{text}");
    }
    for text in ["select count(*) from t", "insert into t values (1)"] {
        assert!(!names(text).unwrap().keeps(), "{text}");
    }
}

#[test]
fn queries_that_are_the_same_by_themselves_are_known() {
    for text in [
        "select * from t where id = $1",
        "SELECT a.id, count(*), coalesce(max(b.n), 0) FROM a LEFT JOIN b ON b.a = a.id GROUP BY 1",
        "select x from t order by x limit 3 offset 2",
        "with a as (select 1) select * from a where exists (select 1 from t)",
        "table t",
        "values (1), (2)",
        "select cast(n as numeric(10, 2)), n::varchar(3) from t",
        "select * from t where t.current_date = 1",
    ] {
        assert!(names(text).unwrap().only_queries(), "{text}");
    }
    for text in [
        "select * from t for update",
        "select * from t for no key update",
        "select * from t for share",
        "select * from t for key share nowait",
        "select * into u from t",
        "select now()",
        "select current_timestamp",
        "select * from t where day = CURRENT_DATE",
        "select pg_advisory_xact_lock(1)",
        "select txid_current()",
        "select nextval('s')",
        "select f(x) from t",
        "with a as (delete from t returning *) select * from a",
        "explain analyze select 1",
        "declare c cursor for select 1",
        "select 1; commit",
        "show timezone",
        "insert into t values (1)",
    ] {
        assert!(!names(text).unwrap().only_queries(), "{text}");
    }
    assert!(PURE.is_sorted());
}

#[test]
fn taking_a_value_from_a_sequence_is_known() {
    for text in [
        "select nextval('s')",
        "SELECT nextval($1)",
        "select pg_catalog.nextval('s'::regclass)",
    ] {
        assert!(names(text).unwrap().only_generates(), "{text}");
    }
    for text in [
        "select nextval('s'), f()",
        "select nextval('s') from t",
        "select setval('s', 1)",
        "insert into t select nextval('s')",
        "select nextval('s'); select nextval('s') + 1",
        "select nextval('s') as now",
    ] {
        assert!(!names(text).unwrap().only_generates(), "{text}");
    }
}

#[test]
fn a_long_text_has_each_name_once() {
    let of = |rows: usize| {
        let rows = "(1, 'a', null), ".repeat(rows);
        names(&format!(
            "insert into t (id, a, b) values {rows}(now(), $1, -1)"
        ))
        .unwrap()
    };
    assert_eq!(of(100_000), of(1));
    let many = |count: usize| names(&"select a.f(b + c); ".repeat(count)).unwrap();
    assert_eq!(many(50_000), many(1));
}

#[test]
fn a_list_of_many_names_makes_room_for_as_many() {
    let mut list = Vec::new();
    let mut sorted = 0;
    for n in (0..1_000).chain(std::iter::repeat_n(0, 10_000)) {
        sorted += usize::from(list.len() == list.capacity());
        note(&mut list, format!("{n:04}").into());
    }
    assert!(sorted < 30, "{sorted}");
}

#[test]
fn an_into_among_many_may_make_a_table() {
    let parts = "x as (insert into t default values), ".repeat(1_000);
    let verbs = |behind: &str| {
        let found = names(&format!("with {parts}y as (select 1) {behind}"));
        list(&found.unwrap().verbs).join(" ")
    };
    assert_eq!(verbs("select * from y"), "with");
    assert_eq!(verbs("insert into t select * from y"), "with");
    assert_eq!(verbs("select * into z from y"), "create with");
    assert_eq!(verbs("select 1 as insert into z from y"), "create with");
}

#[test]
fn definitions_behind_a_body_change_the_catalog() {
    let body = "create function f() returns int begin atomic select 1; end; ";
    assert!(!names(&format!("{body} end")).unwrap().has_late_change);
    let names = names(&format!("select f(); {body} create table a (n int); end")).unwrap();
    assert!(names.has_late_change);
}
