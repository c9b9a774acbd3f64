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
    let retry = ["rejects", "retry", "--all", "--to", &replica.url()];
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
