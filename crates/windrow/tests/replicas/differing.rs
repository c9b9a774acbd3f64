//! What differs: rows that a replica refuses, and those that somebody else has changed.

use serde_json::json;

use crate::support::{Db, Place, check};

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_row_is_put_aside_and_nobody_is_told_of_it() {
    let (primary, replica) = (Db::postgres(), Db::postgres());
    primary.sql("create table t (id int primary key, v int)");
    replica.sql("create table t (id int primary key, v int check (v < 10))");
    let place = Place::of("all", &[("pg", &replica.url())], "");
    let gateway = place.start(&primary.url(), &[]);
    gateway.level().await;
    let rows: Vec<_> = (0..20).map(|id| json!({"id": id, "v": id})).collect();
    gateway.rows("t", &rows).await;
    assert_eq!(replica.sql("select count(*) from t"), "10");
    let letters = "select count(*), min(code), min(destination) from windrow_rejected";
    assert_eq!(replica.sql(letters), "10|23514|t");
    assert_eq!(gateway.replicas().await[0]["rejected"], 10);
    let told = check(&primary.url(), &replica.url(), &[]).ends(1);
    assert!(told.out.contains("t: 20 rows, 10 missing"), "{}", told.out);
    replica.sql("alter table t drop constraint t_v_check");
    let retry = ["dead-letters", "retry", "--all", "--to", &replica.url()];
    crate::support::windrow(&retry).ends(0);
    check(&primary.url(), &replica.url(), &[]).ends(0);
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_has_changed_is_found_and_mended() {
    let (primary, replica) = (Db::postgres(), Db::mariadb());
    let table = "create table t (a int, b varchar(20), v int, primary key (a, b))";
    primary.sql(table);
    replica.sql(table);
    let place = Place::of("all", &[("maria", &replica.url())], "");
    let gateway = place.start(&primary.url(), &[]);
    gateway.level().await;
    let rows: Vec<_> = (0..3000)
        .map(|n| json!({"a": n % 7, "b": format!("k{n}"), "v": n}))
        .collect();
    gateway.rows("t", &rows).await;
    replica.sql("delete from t where v < 5");
    replica.sql("update t set v = -1 where v between 2000 and 2002");
    replica.sql("insert into t values (99, 'x', 1), (99, 'y', 1)");
    let told = check(&primary.url(), &replica.url(), &[]).ends(1);
    let expected = "t: 3000 rows, 5 missing at the replica, 3 different, 2 at the replica alone\n";
    assert_eq!(told.out, expected);
    let told = check(&primary.url(), &replica.url(), &["--repair"]).ends(0);
    assert!(told.out.contains("10 mended"), "{}", told.out);
    check(&primary.url(), &replica.url(), &[]).ends(0);
    gateway.stop();
}

/// Two databases of one kind are compared by sums of ranges.
#[tokio::test(flavor = "multi_thread")]
async fn few_rows_of_many_that_differ_are_found() {
    let (primary, replica) = (Db::postgres(), Db::postgres());
    let fill = "create table t (a int, b text, v float8, at timestamptz, raw bytea, j jsonb, primary key (b, a));
        insert into t select n, 'k' || n % 13, n / 7.0, to_timestamp(n), decode(lpad(to_hex(n), 8, '0'), 'hex'), '{\"a\": 1}' from generate_series(1, 60000) n;
        analyze t;
        create table empty (k int primary key);
        create table none (k int primary key)";
    primary.sql(fill);
    replica.sql(fill);
    replica.sql("insert into none select generate_series(1, 2500)");
    // Written in another way, the same is the same.
    replica.sql(
        "alter database current_db set timezone = 'Asia/Tokyo'"
            .replace("current_db", &name(&replica))
            .as_str(),
    );
    let equal = check(&primary.url(), &replica.url(), &["--repair"]).ends(0);
    assert!(
        equal.out.contains("t: 60000 rows, all alike\n"),
        "{}",
        equal.out
    );
    assert!(
        equal
            .out
            .contains("none: 0 rows, 2500 at the replica alone, 2500 mended\n"),
        "{}",
        equal.out
    );
    replica.sql("delete from t where a in (1, 30000, 60000)");
    replica.sql("update t set v = v + 0.001 where a = 47777");
    replica.sql("insert into t select n, 'zz', 1, now(), '', 'null' from generate_series(1, 1500) n; insert into t values (-1, 'a', null, null, null, null)");
    let told = check(&primary.url(), &replica.url(), &[]).ends(1);
    let expected =
        "t: 60000 rows, 3 missing at the replica, 1 different, 1501 at the replica alone\n";
    assert!(told.out.contains(expected), "{}", told.out);
    check(&primary.url(), &replica.url(), &["--repair"]).ends(0);
    check(&primary.url(), &replica.url(), &[]).ends(0);
    assert_eq!(replica.sql("select count(*) from t"), "60000");
}

fn name(db: &Db) -> String {
    let name = db.sql("select current_database()");
    format!("\"{name}\"")
}
