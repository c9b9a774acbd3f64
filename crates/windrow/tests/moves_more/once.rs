//! Rows that were written before a death are known again, whatever their keys are.

use crate::support::{Db, HELD, hold, let_go, move_rows};

fn fill(from: &Db, to: &Db) {
    from.sql("create table pending (id int primary key, code int not null unique, v int); insert into pending values (1, 2, 10), (2, 3, 20), (3, 1, 30)");
    to.sql("create table final (id int, code int, v int)");
}

/// The key may be another one by the time that a move goes on.
fn by_another_key(from: &Db, to: &Db) {
    fill(from, to);
    hold(from);
    let url = to.url();
    let (by_code, by_id) = (["--to", &url, HELD, "--key", "code"], ["--to", &url, HELD]);
    move_rows(from, "final", &by_code).ends(1);
    move_rows(from, "final", &by_id).ends(1);
    assert_eq!((from.count("pending"), to.count("final")), (3, 3));
    move_rows(from, "final", &by_code).ends(1);
    let_go(from);
    move_rows(from, "final", &by_code).ends(0);
    let counts = to.sql("select count(*), count(distinct id) from final");
    assert_eq!((from.count("pending"), &*counts), (0, "3|3"));
    assert_eq!(to.count("windrow_moved"), 0);
}

#[test]
fn from_postgresql_by_another_key() {
    by_another_key(&Db::postgres(), &Db::sqlite());
}

#[test]
fn from_mariadb_by_another_key() {
    by_another_key(&Db::mariadb(), &Db::postgres());
}

#[test]
fn from_a_file_by_another_key() {
    by_another_key(&Db::sqlite(), &Db::mariadb());
}

/// Where the table itself has another key, what was written cannot be known again.
fn another_primary_key(from: &Db, to: &Db, drop: &str) {
    fill(from, to);
    hold(from);
    let url = to.url();
    move_rows(from, "final", &["--to", &url, HELD]).ends(1);
    let_go(from);
    let changed = |key: &str| {
        from.sql(&format!(
            "alter table pending drop {drop}, add primary key ({key})"
        ));
    };
    changed("code");
    let told = move_rows(from, "final", &["--to", &url]).ends(1);
    let why = "names rows that it wrote by other columns";
    assert!(told.err.contains(why), "{}", told.err);
    assert_eq!((from.count("pending"), to.count("final")), (3, 3));
    changed("id");
    move_rows(from, "final", &["--to", &url]).ends(0);
    assert_eq!((from.count("pending"), to.count("final")), (0, 3));
    changed("code");
    from.sql("insert into pending values (4, 4, 40)");
    move_rows(from, "final", &["--to", &url]).ends(0);
    assert_eq!((from.count("pending"), to.count("final")), (0, 4));
}

#[test]
fn a_primary_key_that_is_another_one_is_missed_in_a_file() {
    another_primary_key(&Db::postgres(), &Db::sqlite(), "constraint pending_pkey");
}

#[test]
fn a_primary_key_that_is_another_one_is_missed_in_postgresql() {
    another_primary_key(&Db::mariadb(), &Db::postgres(), "primary key");
}

#[test]
fn a_primary_key_that_is_another_one_is_missed_in_mariadb() {
    another_primary_key(&Db::postgres(), &Db::mariadb(), "constraint pending_pkey");
}

const ODD: [&str; 14] = [
    "'MQ=='",
    "x'31'",
    "''",
    "x''",
    "9e999",
    "-9e999",
    "'Infinity'",
    "1",
    "'1'",
    "'1.0'",
    "'{\"bytes\":\"MQ==\"}'",
    "cast(x'ff' as text)",
    "x'ff'",
    "'/w=='",
];

fn odd(to: &Db) {
    for declared in ["", "blob"] {
        let from = Db::sqlite();
        from.sql(&format!(
            "create table pending (id {declared} primary key not null, v int)"
        ));
        for (v, id) in ODD.iter().enumerate() {
            from.sql(&format!("insert into pending values ({id}, {v})"));
        }
        to.sql("create table final (id text, v int)");
        let told = move_rows(&from, "final", &["--to", &to.url()]);
        assert!(matches!(told.status, 0 | 3), "{}", told.err);
        let counts = to.sql("select count(*), count(distinct v) from final");
        let arrived = to.count("final");
        assert_eq!(counts, format!("{arrived}|{arrived}"));
        // What the column there cannot hold is told.
        let letters = from.count("windrow_rejected");
        assert_eq!((from.count("pending"), arrived + letters), (0, ODD.len()));
        assert!(letters < 5, "{letters}");
        to.sql("drop table final");
    }
}

#[test]
fn keys_that_differ_in_their_type_alone_are_two() {
    odd(&Db::postgres());
    odd(&Db::sqlite());
}

#[test]
fn keys_whose_json_is_the_same_are_two() {
    let (from, to) = (Db::postgres(), Db::mariadb());
    from.sql("create type pair as (a int, b int[]);
        create table pending (a int[] not null, p pair not null, v int, primary key (a, p));
        insert into pending values ('{1,2}', '(1,{2})', 1), ('[0:1]={1,2}', '(1,{2})', 2), ('{1,2}', '(1,[3:3]={2})', 3)");
    to.sql("create table final (a text, p text, v int)");
    move_rows(&from, "final", &["--to", &to.url()]).ends(0);
    let counts = to.sql("select count(*), count(distinct v) from final");
    assert_eq!((from.count("pending"), &*counts), (0, "3|3"));
}

#[test]
fn rows_with_null_in_the_primary_key_are_named_by_another() {
    let (from, to) = (Db::sqlite(), Db::postgres());
    from.sql("create table pending (id text primary key, code int not null unique); insert into pending values (null, 1), (null, 2), ('a', 3)");
    to.sql("create table final (id text, code int)");
    move_rows(&from, "final", &["--to", &to.url(), "--key", "code"]).ends(0);
    assert_eq!((from.count("pending"), to.count("final")), (0, 3));
}
