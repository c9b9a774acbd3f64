//! One bad row among a thousand: the others are written, its own client alone is told, with code
//! and constraint.

use futures_util::future::join_all;
use serde_json::Value as Json;

use crate::support::{Db, Gateway, code};

const SCHEMA: &str = "create table readings (id bigint primary key, station varchar(8) not null,
    celsius integer check (celsius > -274))";

/// Each kind of bad row, and what its client is told on PostgreSQL.
const POISON: [(&str, u16, &str, Option<&str>); 5] = [
    (
        r#"{"id": 7, "station": "again", "celsius": 1}"#,
        409,
        "23505",
        Some("readings_pkey"),
    ),
    (
        r#"{"id": 5000, "station": null, "celsius": 1}"#,
        422,
        "23502",
        None,
    ),
    (
        r#"{"id": 5000, "station": "cold", "celsius": -300}"#,
        422,
        "23514",
        Some("readings_celsius_check"),
    ),
    (
        r#"{"id": 5000, "station": "much too long", "celsius": 1}"#,
        422,
        "22001",
        None,
    ),
    (
        r#"{"id": 5000, "station": "word", "celsius": "warm"}"#,
        422,
        "22P02",
        None,
    ),
];

fn good(id: usize) -> String {
    format!(
        r#"{{"id": {id}, "station": "s{}", "celsius": {}}}"#,
        id % 7,
        id % 40
    )
}

async fn among_clients(db: &Db, check: impl Fn(&Json, usize, u16)) {
    for (n, (bad, ..)) in POISON.iter().enumerate() {
        db.run("delete from readings").await;
        let gateway = Gateway::to(&db.url()).await;
        gateway.insert("readings", &good(7)).await;
        let rows: Vec<String> = (1000..1999).map(good).chain([(*bad).to_owned()]).collect();
        let answers = join_all(rows.iter().map(|row| gateway.insert("readings", row))).await;
        for (status, answer) in &answers[..999] {
            assert_eq!(
                (*status, answer),
                (201, &serde_json::json!({"rows": 1})),
                "a neighbour of {bad}"
            );
        }
        let (status, answer) = &answers[999];
        check(answer, n, *status);
        assert_eq!(db.number("select count(*) from readings").await, 1000);
        gateway.stop().await;
    }
}

#[tokio::test]
async fn one_bad_client_among_a_thousand_on_postgres() {
    let db = Db::postgres().await;
    db.run(SCHEMA).await;
    among_clients(&db, |answer, n, status| {
        let (_, expected, sqlstate, constraint) = POISON[n];
        assert_eq!((status, code(answer)), (expected, sqlstate), "{answer}");
        assert_eq!(answer["error"]["constraint"].as_str(), constraint);
    })
    .await;
}

#[tokio::test]
async fn one_bad_client_among_a_thousand_on_sqlite() {
    let db = Db::sqlite();
    db.run(
        &format!("{SCHEMA} strict")
            .replace("varchar(8)", "text check (length(station) <= 8)")
            .replace("bigint", "integer"),
    )
    .await;
    among_clients(&db, |answer, n, status| {
        let (_, expected, sqlstate, _) = POISON[n];
        // SQLite has no type for length; its check says so, and its strict tables have a code of
        // their own for types.
        let sqlstate = if sqlstate == "22001" {
            "23514"
        } else {
            sqlstate
        };
        assert_eq!(status, expected, "{answer}");
        assert_eq!(&code(answer)[..2], &sqlstate[..2], "{answer}");
    })
    .await;
}

/// One per cent of a large body is bad, of all kinds: exactly those rows fail, each with its own
/// error, in its place.
#[tokio::test]
async fn bad_rows_of_a_body_fail_in_their_places() {
    let db = Db::postgres().await;
    db.run(SCHEMA).await;
    let gateway = Gateway::to(&db.url()).await;
    gateway.insert("readings", &good(7)).await;
    let bad = |n: usize| n % 100 == 50;
    let line = |n: usize| {
        if bad(n) {
            POISON[n / 100 % 5].0.to_owned()
        } else {
            good(10_000 + n)
        }
    };
    let body: String = (0..5000).map(|n| line(n) + "\n").collect();
    let (status, answer) = gateway
        .try_send(
            "POST",
            "/v1/tables/readings/rows",
            "application/x-ndjson",
            Some(body),
        )
        .await
        .unwrap();
    assert_eq!(
        (status, &answer["rows"], &answer["errors"]),
        (207, &4950.into(), &50.into())
    );
    for (n, result) in answer["results"].as_array().unwrap().iter().enumerate() {
        if bad(n) {
            assert_eq!(code(result), POISON[n / 100 % 5].2, "row {n}: {result}");
        } else {
            assert_eq!(result["rows"], 1, "row {n}: {result}");
        }
    }
    assert_eq!(db.number("select count(*) from readings").await, 4951);
    gateway.stop().await;
}

/// All or nothing: the first failing row is named, no other is written; the next body is not
/// disturbed.
#[tokio::test]
async fn an_atomic_body_is_all_or_nothing() {
    for db in [Db::postgres().await, Db::sqlite()] {
        db.run("create table readings (id bigint primary key, station varchar(8) not null)")
            .await;
        let gateway = Gateway::to(&db.url()).await;
        let body = |bad: &str| {
            format!(r#"[{{"id": 1, "station": "a"}}, {{"id": 2, "station": "b"}}{bad}]"#)
        };
        let path = "/v1/tables/readings/rows?atomic=true";
        let (status, answer) = gateway
            .send("POST", path, Some(body(r#", {"id": 1, "station": "c"}"#)))
            .await;
        assert_eq!(
            (status, code(&answer), &answer["index"]),
            (409, "23505", &2.into()),
            "{answer}"
        );
        assert_eq!(db.number("select count(*) from readings").await, 0);
        let (status, answer) = gateway.send("POST", path, Some(body(""))).await;
        assert_eq!((status, &answer["rows"]), (200, &2.into()), "{answer}");
        assert_eq!(db.number("select count(*) from readings").await, 2);
        gateway.stop().await;
    }
}
