//! A new replica is given what was there, while writes go on.

use serde_json::json;

use crate::support::{Db, Place, check, windrow};

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_copied_while_writes_go_on() {
    // Rows refer to some that come later.
    let (primary, replica) = (Db::postgres(), Db::sqlite());
    primary.sql(
        "create schema shop;
        create table shop.items (id int primary key, parent int references shop.items, v int, secret text);
        create table no_key (v int);
        insert into shop.items select n, case when n < 10000 then n * 2 + 1 end, n, 'x' from generate_series(0, 20000) n;",
    );
    replica.sql("create table goods (id int primary key, parent int references goods, v int)");
    let more = "tables = { \"shop.items\" = \"goods\" }\nleave_out = [\"shop.items.secret\"]";
    let place = Place::of("primary", &[("lite", &replica.url())], more);
    let ends = [
        "--table",
        "shop.items=goods",
        "--leave-out",
        "shop.items.secret",
    ];
    let (from, to) = (primary.url(), replica.url());
    let add = ["replica", "add", "lite", "--to", &from, "--replica", &to];
    let told = windrow(&[&add[..], &ends].concat()).ends(0);
    assert!(
        told.out.contains("no_key has no primary key"),
        "{}",
        told.out
    );
    windrow(&add).fails_with("the table items");
    let gateway = place.start(&from, &[]);
    for round in 0..30 {
        let rows: Vec<_> = (0..50)
            .map(|n| json!({"id": n * 400, "v": -round}))
            .collect();
        gateway.rows("shop.items?on_conflict=update", &rows).await;
        let row = json!({"id": 30000 + round, "v": round, "secret": "y"});
        gateway.rows("shop.items", &[row]).await;
    }
    gateway.level().await;
    let told = check(&from, &to, &ends).ends(0);
    assert!(told.out.contains("20031 rows, all alike"), "{}", told.out);
    assert_eq!(replica.sql("select count(*) from windrow_rejected"), "0");
    let log = gateway.stop();
    assert!(log.contains("all rows are copied"), "{log}");
    // It is not copied once more.
    let gateway = place.start(&from, &[]);
    gateway.level().await;
    assert!(!gateway.stop().contains("copying"));
}
