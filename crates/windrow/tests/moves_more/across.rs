//! From and to MariaDB and SQLite.

use crate::support::{Db, HELD, hold, let_go, move_rows};

#[test]
fn values_of_mariadb_arrive_in_postgresql() {
    let (from, to) = (Db::mariadb(), Db::postgres());
    from.sql("create table pending (id bigint unsigned primary key, n decimal(40,10), f double, b varbinary(10), t text, at datetime(6), ts timestamp(3) null, d date, ok boolean, j json);
        insert into pending values (18446744073709551615, 123456789012345678901234567890.0123456789, 0.1, x'00ff', 'it''s \"ü\"', '2026-01-02 03:04:05.000006', '2026-01-02 03:04:05.5', '2026-01-02', true, '{\"a\": 1.50}'),
            (1, null, null, null, null, null, null, null, null, null)");
    to.sql("create table final (id numeric primary key, n numeric, f float8, b bytea, t text, at timestamp, ts timestamptz, d date, ok boolean, j json)");
    move_rows(&from, "final", &["--to", &to.url()]).ends(0);
    // MySQL keeps no zeros at the end of a number in JSON.
    let number = if from.is_mysql() { "1.5" } else { "1.50" };
    let expected = "18446744073709551615|123456789012345678901234567890.0123456789|0.1|00ff|it's \"ü\"|2026-01-02 03:04:05.000006|2026-01-02 03:04:05.5|2026-01-02|t";
    assert_eq!(
        to.sql("select id, n, f, encode(b, 'hex'), t, at, ts at time zone 'UTC', d, ok, j from final where id > 1"),
        format!("{expected}|{{\"a\": {number}}}")
    );
    assert_eq!(
        (
            from.count("pending"),
            to.count("final"),
            to.count("windrow_moved")
        ),
        (0, 2, 0)
    );
}

#[test]
fn values_of_postgresql_arrive_in_mariadb() {
    let (from, to) = (Db::postgres(), Db::mariadb());
    from.sql("create table pending (id int primary key, tenant text, n numeric, at timestamptz, b bytea);
        insert into pending values (1, 'a', 1.50, '2026-01-02 03:04:05.5+02', '\\x00ff'), (2, 'A', 2, null, null), (3, 'a', 300, null, null), (4, 'gone', 1, null, null)");
    to.sql("create table final_a (id int primary key, tenant varchar(10), n decimal(10,2) check (n < 100), at timestamp(6) null, b blob)");
    // On MySQL a copy would give its check a name that differs from the other's in case alone.
    to.sql("create table final_A (id int primary key, tenant varchar(10), n decimal(10,2), at timestamp(6) null, b blob)");
    let told = move_rows(&from, "final_{tenant}", &["--to", &to.url()]).ends(3);
    assert!(told.err.contains("2 rows moved"), "{}", told.err);
    assert_eq!(
        to.sql("set time_zone = '+00:00'; select id, n, at, hex(b) from final_a"),
        "1|1.50|2026-01-02 01:04:05.500000|00FF"
    );
    assert_eq!(to.count("final_A"), 1);
    let letters = from.sql("select destination, code from windrow_rejected order by id");
    assert_eq!(letters, "final_a|23514\nfinal_gone|42P01");
    assert_eq!((from.count("pending"), to.count("windrow_moved")), (0, 0));
}

#[test]
fn refused_rows_stay_in_the_source_of_sqlite_with_their_reason() {
    let (from, to) = (Db::sqlite(), Db::mariadb());
    from.sql("create table pending (device text, n int, v text, at timestamp, primary key (device, n));
        insert into pending with t (i) as (select 1 union all select i + 1 from t where i < 300) select 'd' || (i % 3), i, 'v' || i, '2026-01-01T00:00:00Z' from t;
        update pending set v = 'much too long' where n = 77");
    to.sql("create table final (device varchar(20), n int, v varchar(6), at timestamp null, primary key (device, n))");
    move_rows(&from, "final", &["--to", &to.url(), "--batch", "64"]).ends(3);
    let letters = from.sql("select \"key\", code, destination from windrow_rejected");
    assert_eq!(letters, "[\"d2\",77]|22001|final");
    assert_eq!(
        (
            from.count("pending"),
            to.count("final"),
            to.count("windrow_moved")
        ),
        (0, 299, 0)
    );
}

#[test]
fn a_row_that_was_written_before_a_death_only_goes() {
    let (from, to) = (Db::mariadb(), Db::sqlite());
    from.sql("create table pending (id int primary key, v text); insert into pending values (0, 'zero'), (-1, 'stays')");
    to.sql("create table final (id int, v text)");
    // A mover that cannot delete leaves its markers.
    hold(&from);
    move_rows(&from, "final", &["--to", &to.url(), HELD]).ends(1);
    assert_eq!(
        (
            from.count("pending"),
            to.count("final"),
            to.count("windrow_moved")
        ),
        (2, 2, 2)
    );
    let_go(&from);
    move_rows(&from, "final", &["--to", &to.url()]).ends(0);
    assert_eq!(
        (
            from.count("pending"),
            to.count("final"),
            to.count("windrow_moved")
        ),
        (0, 2, 0)
    );
}
