//! INSERTs of SQL clients that are sent again with the same key.

use tokio_postgres::Client;

use crate::sql::{connect, start, told};
use crate::support::{Db, spool};

const TABLES: &str = "create table t (id int primary key, v text);
    create table made (id int generated always as identity primary key, v text);";

async fn under(client: &Client, key: &str, sql: &str) -> String {
    let set = told(client, &format!("set windrow.idempotency_key = '{key}'")).await;
    assert_eq!(set, "0");
    told(client, sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_with_a_key_is_executed_once() {
    for ack in ["commit", "spool"] {
        let (db, directory) = (Db::postgres(), spool());
        db.sql(TABLES);
        let mut gateway = start(&db, directory.path(), &["--ack", ack]);
        let insert = "insert into made (v) values ('a')";
        for _ in 0..2 {
            for _ in 0..2 {
                let client = connect(&gateway, &db, "").await;
                assert_eq!(under(&client, "k1", insert).await, "1");
                assert_eq!(told(&client, "show windrow.idempotency_key").await, "");
                // The key was for one write.
                assert_eq!(told(&client, "insert into t values (1, 'x') on conflict (id) do update set v = excluded.v").await, "1");
                let rows = client.query("select count(*) from made", &[]).await;
                assert_eq!(rows.unwrap()[0].get::<_, i64>(0), 1);
            }
            gateway.kill9();
            gateway = start(&db, directory.path(), &["--ack", ack]);
        }
        gateway.level().await;
        gateway.stop();
        assert_eq!(db.sql("select count(*) from made"), "1");
        assert_eq!(db.sql("select count(*) from windrow_rejected"), "0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_under_a_key_is_told_again() {
    let (db, directory) = (Db::postgres(), spool());
    db.sql(TABLES);
    db.sql("insert into t values (1, 'there')");
    let gateway = start(&db, directory.path(), &["--ack", "commit"]);
    let client = connect(&gateway, &db, "").await;
    let insert = "insert into t values (1, 'again')";
    assert_eq!(under(&client, "k", insert).await, "error 23505");
    db.sql("delete from t");
    assert_eq!(under(&client, "k", insert).await, "error 23505");
    assert_eq!(
        under(&client, "k", "insert into t values (2, 'other')").await,
        "error 22023"
    );
    assert_eq!(under(&client, "k2", insert).await, "1");
    // Also with parameters, which drivers send.
    for _ in 0..2 {
        assert_eq!(
            told(&client, "set windrow.idempotency_key = 'k3'").await,
            "0"
        );
        let done = client
            .execute("insert into t values ($1, $2)", &[&3, &"p"])
            .await;
        assert_eq!(done.unwrap(), 1);
    }
    assert_eq!(db.sql("select id, v from t order by id"), "1|again\n3|p");
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_executed_under_a_key_is_refused() {
    let (db, directory) = (Db::postgres(), spool());
    db.sql(TABLES);
    let gateway = start(&db, directory.path(), &["--ack", "commit"]);
    let client = connect(&gateway, &db, "").await;
    for sql in [
        "update t set v = 'x'",
        "delete from t",
        "insert into t select 1, 'x'",
        "insert into made (v) values ('a') returning id",
        "begin",
        "create table other (id int)",
    ] {
        assert_eq!(under(&client, "k", sql).await, "error 0A000", "{sql}");
    }
    assert_eq!(told(&client, "show windrow.idempotency_key").await, "k");
    assert!(client.query("select 1", &[]).await.is_ok());
    assert_eq!(told(&client, "reset windrow.idempotency_key").await, "0");
    assert_eq!(told(&client, "insert into t values (1, 'x')").await, "1");
    // Within a transaction there is no key.
    told(&client, "begin").await;
    assert_eq!(
        told(&client, "set windrow.idempotency_key = 'k'").await,
        "error 0A000"
    );
    told(&client, "rollback").await;
    let long = format!("set windrow.idempotency_key = '{}'", "k".repeat(300));
    assert_eq!(told(&client, &long).await, "error 22023");
    assert_eq!(db.sql("select count(*) from t"), "1");
    gateway.stop();
}
