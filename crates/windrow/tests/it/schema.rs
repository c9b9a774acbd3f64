//! The schema changes while rows are written: nothing is lost, nothing is wrong.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;

use crate::support::{Db, Gateway, code};

const CLIENTS: usize = 16;

/// Columns come and go while clients insert rows that do not name them: every row is answered with
/// success and is there.
async fn columns_come_and_go(db: Db) {
    db.run("create table readings (id bigint primary key, celsius numeric)")
        .await;
    let gateway = Gateway::to(&db.url()).await;
    let changing = AtomicBool::new(true);
    let write = async |client: usize| {
        let mut written = 0usize;
        while changing.load(Ordering::Relaxed) || written < 20 {
            let id = client * 1_000_000 + written;
            let (status, answer) = gateway
                .insert("readings", &format!("{{\"id\": {id}, \"celsius\": 21.50}}"))
                .await;
            assert_eq!(status, 201, "{answer}");
            written += 1;
        }
        written
    };
    let change = async {
        for n in 0..10 {
            db.run(&format!(
                "alter table readings add column extra{n} text default 'x'"
            ))
            .await;
            // The next change waits for writes that have seen this one.
            let seen = db.number("select count(*) from readings").await;
            while db.number("select count(*) from readings").await < seen + 50 {
                tokio::task::yield_now().await;
            }
            if n % 2 == 0 {
                db.run(&format!("alter table readings drop column extra{n}"))
                    .await;
            }
        }
        changing.store(false, Ordering::Relaxed);
    };
    let (written, ()) = tokio::join!(join_all((0..CLIENTS).map(write)), change);
    let total: usize = written.iter().sum();
    assert_eq!(
        db.number("select count(*) from readings").await,
        i64::try_from(total).unwrap()
    );
    gateway.stop().await;
}

#[tokio::test]
async fn columns_come_and_go_on_postgres() {
    columns_come_and_go(Db::postgres().await).await;
}

#[tokio::test]
async fn columns_come_and_go_on_sqlite() {
    columns_come_and_go(Db::sqlite()).await;
}

/// Types that widen under load: what fits the new type is written with every digit as soon as the
/// change is there.
#[tokio::test]
async fn types_widen_without_losing_a_digit() {
    let db = Db::postgres().await;
    db.run("create table readings (id bigint primary key, a int, b double precision)")
        .await;
    let gateway = Gateway::to(&db.url()).await;
    let row = |id: usize| format!("{{\"id\": {id}, \"a\": 1, \"b\": 0.5}}");
    let rows: Vec<String> = (0..200).map(row).collect();
    for (status, answer) in join_all(rows.iter().map(|r| gateway.insert("readings", r))).await {
        assert_eq!(status, 201, "{answer}");
    }
    db.run("alter table readings alter a type bigint, alter b type numeric")
        .await;
    let row = |id: usize| {
        format!("{{\"id\": {id}, \"a\": 3000000000, \"b\": 0.12345678901234567890123}}")
    };
    let rows: Vec<String> = (1000..1200).map(row).collect();
    for (status, answer) in join_all(rows.iter().map(|r| gateway.insert("readings", r))).await {
        assert_eq!(status, 201, "{answer}");
    }
    let exact = "select count(*) from readings where a = 3000000000 and b::text = '0.12345678901234567890123'";
    assert_eq!(db.number(exact).await, 200);
    gateway.stop().await;
}

/// A column that went is told as the database tells it, a table that went too; both work again once
/// they are back.
#[tokio::test]
async fn what_is_gone_is_told_and_what_is_back_works() {
    for db in [Db::postgres().await, Db::sqlite()] {
        db.run("create table readings (id bigint primary key, celsius numeric)")
            .await;
        let gateway = Gateway::to(&db.url()).await;
        let insert = async |id: usize| {
            let (status, answer) = gateway
                .insert("readings", &format!("{{\"id\": {id}, \"celsius\": 1}}"))
                .await;
            (status, code(&answer).to_owned())
        };
        assert_eq!(insert(1).await.0, 201);
        db.run("alter table readings drop column celsius").await;
        assert_eq!(insert(2).await, (422, "42703".into()));
        db.run("alter table readings add column celsius numeric")
            .await;
        assert_eq!(insert(3).await.0, 201);
        db.run("drop table readings").await;
        assert_eq!(insert(4).await, (404, "42P01".into()));
        db.run("create table readings (id bigint primary key, celsius text)")
            .await;
        assert_eq!(insert(5).await.0, 201);
        assert_eq!(db.number("select count(*) from readings").await, 1);
        gateway.stop().await;
    }
}

/// Tables that Windrow makes get columns as rows bring them, and no column ever gets another type.
#[tokio::test]
async fn tables_are_made_from_rows_and_keep_their_types() {
    for db in [Db::postgres().await, Db::sqlite()] {
        let gateway = Gateway::with(&db.url(), "database = { create_tables = true }").await;
        for (row, status, code_of) in [
            (r#"{"id": 1, "celsius": 21.5, "note": null}"#, 201, ""),
            (
                r#"{"id": 2, "celsius": 22, "note": "text", "at": "2024-01-05T10:00:00Z"}"#,
                201,
                "",
            ),
            (r#"{"id": 3, "celsius": "n/a"}"#, 422, "22P02"),
            (r#"{"id": 4, "at": "yesterday"}"#, 422, "22P02"),
            (r#"{"id": "five", "celsius": 1}"#, 422, "22P02"),
            (r#"{"id": 6, "more": {"a": [1, 2]}}"#, 201, ""),
            (r#"{"id": 1}"#, 409, "23505"),
        ] {
            let (answered, answer) = gateway.insert("things", row).await;
            assert_eq!(answered, status, "{row}: {answer}");
            assert_eq!(code(&answer), code_of, "{row}: {answer}");
        }
        let (_, row) = gateway.send("GET", "/v1/tables/things/rows/6", None).await;
        assert_eq!(row["more"], serde_json::json!({"a": [1, 2]}));
        assert_eq!(
            db.number("select count(*) from things where celsius > 20")
                .await,
            2
        );
        db.run("create table theirs (id bigint primary key)").await;
        let (status, answer) = gateway.insert("theirs", r#"{"id": 1, "new": 1}"#).await;
        assert_eq!((status, code(&answer)), (422, "42703"), "{answer}");
        assert!(answer.to_string().contains("extend_tables"), "{answer}");
        gateway.stop().await;
    }
}
