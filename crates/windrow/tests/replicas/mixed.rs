//! Replicas of other kinds: rows are on each when they are answered, with the same values.

use serde_json::json;

use crate::support::{Db, Place, check};

const PRIMARY: &str = "
    create table kinds (id bigint generated always as identity primary key, b boolean, i int, n numeric(12,2), f float8,
        t text, ts timestamptz, d date, j jsonb, u uuid, raw bytea, total int generated always as (i * 2) stored, noted text default 'by default');
    create table parents (id int primary key, name text unique);
    create table children (parent int references parents, no int, primary key (parent, no));";

const POSTGRES: &str = PRIMARY;

const MARIA: &str = "
    create table kinds (id bigint auto_increment primary key, b boolean, i int, n decimal(12,2), f double,
        t text, ts datetime(6), d date, j json, u char(36), raw blob, total int generated always as (i * 2) stored, noted text);
    create table parents (id int primary key, name varchar(100) unique);
    create table children (parent int, no int, primary key (parent, no), foreign key (parent) references parents (id));";

const SQLITE: &str = "
    create table kinds (id integer primary key, b boolean, i int, n decimal(12,2), f real,
        t text, ts text, d text, j json, u text, raw blob, total int, noted text);
    create table parents (id int primary key, name text unique);
    create table children (parent int references parents, no int, primary key (parent, no));";

#[tokio::test(flavor = "multi_thread")]
async fn all_have_a_row_when_it_is_answered() {
    let primary = Db::postgres();
    let others = [
        ("pg", Db::postgres(), POSTGRES),
        ("maria", Db::mariadb(), MARIA),
        ("lite", Db::sqlite(), SQLITE),
    ];
    primary.sql(PRIMARY);
    for (_, db, tables) in &others {
        db.sql(tables);
    }
    let urls: Vec<_> = others
        .iter()
        .map(|(name, db, _)| (*name, db.url()))
        .collect();
    let urls: Vec<_> = urls.iter().map(|(name, url)| (*name, &**url)).collect();
    let place = Place::of("all", &urls, "");
    let gateway = place.start(&primary.url(), &[]);
    gateway.level().await;
    let on_each =
        |sql: &str| -> Vec<String> { others.iter().map(|(_, db, _)| db.sql(sql)).collect() };
    // Keys are counted up by the primary.
    let row = json!({"b": true, "i": -7, "n": 1.5, "f": 0.1, "t": "it's \\ ü", "ts": "2026-01-02T03:04:05.25Z",
        "d": "2026-01-02", "j": {"a": [1, null]}, "u": "0f8fad5b-d9cb-469f-a165-70867728950e", "raw": "AP8="});
    let rows: Vec<_> = (0..50)
        .map(|i| {
            let mut row = row.clone();
            row["i"] = json!(i);
            row
        })
        .collect();
    gateway.rows("kinds", &rows).await;
    assert_eq!(on_each("select count(*) from kinds"), ["50"; 3]);
    let noted = "select count(*) from kinds where noted = 'by default' and total = i * 2";
    assert_eq!(on_each(noted), ["50"; 3]);
    let answer = gateway
        .rows("kinds?returning=t", &[json!({"t": "x"})])
        .await;
    assert!(!answer.to_string().contains("\"id\""), "{answer}");
    // Parents and their children in one body; changed, and gone.
    gateway
        .rows(
            "parents",
            &[json!({"id": 1, "name": "a"}), json!({"id": 2, "name": "b"})],
        )
        .await;
    gateway
        .rows(
            "children",
            &[json!({"parent": 1, "no": 1}), json!({"parent": 2, "no": 1})],
        )
        .await;
    assert_eq!(on_each("select count(*) from children"), ["2"; 3]);
    let changed = gateway.send(
        "PATCH",
        "/v1/tables/kinds/rows/1",
        json!({"t": "new"}).to_string(),
    );
    assert_eq!(changed.await.0, 200);
    assert_eq!(on_each("select t from kinds where id = 1"), ["new"; 3]);
    gateway
        .rows(
            "parents?on_conflict=update",
            &[json!({"id": 1, "name": "c"})],
        )
        .await;
    assert_eq!(on_each("select name from parents where id = 1"), ["c"; 3]);
    let gone = gateway
        .send("DELETE", "/v1/tables/kinds/rows/2", String::new())
        .await;
    assert_eq!(gone.0, 200, "{gone:?}");
    assert_eq!(on_each("select count(*) from kinds"), ["50"; 3]);
    for (name, url) in &urls {
        let told = check(&primary.url(), url, &[]);
        assert_eq!(told.status, 0, "{name}: {}{}", told.out, told.err);
        assert!(
            told.out.contains("kinds: 50 rows, all alike"),
            "{}",
            told.out
        );
    }
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_alone_is_refused_with_replicas() {
    let (primary, replica) = (Db::postgres(), Db::sqlite());
    primary.sql("create table t (id int primary key, v int check (v > 0))");
    replica.sql("create table t (id int primary key, v int)");
    let place = Place::of("all", &[("lite", &replica.url())], "");
    let gateway = place.start(&primary.url(), &[]);
    gateway.level().await;
    gateway.rows("t", &[json!({"id": 1, "v": 1})]).await;
    for (row, status) in [
        (json!({"id": 1, "v": 2}), 409),
        (json!({"id": 2, "v": 0}), 422),
        (json!({"id": "x", "v": 1}), 422),
    ] {
        let (told, answer) = gateway
            .send("POST", "/v1/tables/t/rows", row.to_string())
            .await;
        assert!(
            (400..500).contains(&told),
            "{status} expected: {told} {answer}"
        );
    }
    gateway.rows("t", &[json!({"id": 3, "v": 3})]).await;
    assert_eq!(replica.sql("select id, v from t order by id"), "1|1\n3|3");
    gateway.stop();
}
