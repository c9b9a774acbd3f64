//! Databases of which no two sum values up alike are compared by rows read in bulk.

use crate::support::{Db, check};

/// Rows with keys that databases order differently, and with values that they write differently.
const ROWS: i64 = 2_600;

fn table(db: &Db) -> &'static str {
    match db {
        Db::Postgres(_) => {
            "create table t (a text, b int, on_ boolean, n numeric(12,3), f float8, x text, at timestamptz, d date, j jsonb, raw bytea, primary key (a, b))"
        }
        Db::Maria(_) => {
            "create table t (a varchar(40) collate utf8mb4_bin, b int, on_ boolean, n decimal(12,3), f double, x text, at datetime(6), d date, j json, raw blob, primary key (a, b))"
        }
        Db::Sqlite(_) => {
            "create table t (a text, b int, on_ boolean, n numeric, f real, x text, at text, d date, j json, raw blob, primary key (a, b))"
        }
    }
}

fn fill(db: &Db) {
    db.sql(table(db));
    let row = |n: i64| {
        let letter = ["A", "b", "C-", "d_", "É", "e"][usize::try_from(n % 6).unwrap()];
        let raw = format!("{n:08x}");
        let raw = match db {
            Db::Postgres(_) => format!("'\\x{raw}'"),
            _ => format!("x'{raw}'"),
        };
        let truth = n % 2 == 0;
        let (noted, json) = match n % 5 {
            0 => ("null".to_owned(), "null".to_owned()),
            _ => (format!("'it''s {n}'"), format!("'{{\"n\": {n}}}'")),
        };
        format!(
            "('{letter}{}', {n}, {truth}, {}.250, {}.5, {noted}, '2026-01-02 03:04:{:02}.5', '2026-02-{:02}', {json}, {raw})",
            n % 40,
            n * 7,
            n - 1000,
            n % 60,
            n % 28 + 1,
        )
    };
    let rows: Vec<String> = (0..ROWS).map(row).collect();
    db.sql(&format!("insert into t values {}", rows.join(", ")));
}

fn finds_and_mends(primary: &Db, replica: &Db) {
    for db in [primary, replica] {
        fill(db);
    }
    let compare = |more: &[&str]| check(&primary.url(), &replica.url(), more);
    let told = compare(&[]).ends(0);
    assert_eq!(told.out, format!("t: {ROWS} rows, all alike\n"));
    replica.sql("delete from t where b in (0, 1299, 2599)");
    replica.sql("update t set n = n + 0.001 where b = 17");
    replica.sql("update t set x = 'other' where b = 1800");
    replica.sql("update t set raw = null where b = 1801");
    let more: Vec<String> = (0..1_100).map(|n| format!("('Zz{n}', {n})")).collect();
    replica.sql(&format!("insert into t (a, b) values {}", more.join(", ")));
    replica.sql("insert into t (a, b) values ('', 1), ('zz', -1), ('A0', -1)");
    let told = compare(&[]).ends(1);
    let found = "3 missing at the replica, 3 different, 1103 at the replica alone";
    assert_eq!(told.out, format!("t: {ROWS} rows, {found}\n"));
    let told = compare(&["--repair"]).ends(0);
    assert_eq!(told.out, format!("t: {ROWS} rows, {found}, 1109 mended\n"));
    compare(&[]).ends(0);
    assert_eq!(replica.sql("select count(*) from t"), ROWS.to_string());
}

#[test]
fn postgres_beside_sqlite() {
    finds_and_mends(&Db::postgres(), &Db::sqlite());
}

#[test]
fn postgres_beside_mariadb() {
    finds_and_mends(&Db::postgres(), &Db::mariadb());
}

#[test]
fn two_of_mariadb() {
    finds_and_mends(&Db::mariadb(), &Db::mariadb());
}

#[test]
fn sqlite_beside_mariadb() {
    finds_and_mends(&Db::sqlite(), &Db::mariadb());
}

/// Keys that the replica's column cannot hold end ranges of the primary.
#[test]
fn keys_that_the_replica_cannot_read() {
    let (primary, replica) = (Db::sqlite(), Db::postgres());
    primary.sql("create table t (k primary key, v int)");
    replica.sql("create table t (k int primary key, v int)");
    primary.sql("with recursive c(n) as (select 1 union all select n + 1 from c where n < 3500) insert into t select iif(n between 900 and 2200, 'k' || n, n), n from c");
    replica.sql("insert into t select n, n from generate_series(1, 3501) n where n not between 900 and 2200 and n <> 3000");
    let told = check(&primary.url(), &replica.url(), &[]).ends(1);
    let found = "t: 3500 rows, 1302 missing at the replica, 1 at the replica alone\n";
    assert_eq!(told.out, found);
}
