//! INSERTs of SQL clients that are sent again with the same key.

use std::time::Instant;

use tokio_postgres::{Client, NoTls};
use windrow_testkit::postgres::Postgres;

use crate::sql::{connect, sql_config_of, start, told};
use crate::support::{Db, Gateway, TEST_TIMEOUT, spool};

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
    // What writes nothing needs no key.
    assert!(client.query("select 1", &[]).await.is_ok());
    assert!(client.query("show timezone", &[]).await.is_ok());
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

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_keeps_a_server_connection_writes_nothing_under_a_key() {
    let (db, directory) = (Db::postgres(), spool());
    db.sql(TABLES);
    db.sql("create function f() returns int language plpgsql as 'begin return 1; end'");
    let gateway = start(&db, directory.path(), &["--ack", "commit"]);
    let client = connect(&gateway, &db, "").await;
    let insert = "insert into t values (1, 'x')";
    // Nothing is proven of the function, so the session keeps the connection from now on.
    assert_eq!(under(&client, "k", "select f()").await, "1");
    assert_eq!(told(&client, insert).await, "error 0A000");
    let prepared = client.execute("insert into t values ($1, 'x')", &[&1]);
    assert!(prepared.await.is_err());
    assert_eq!(db.sql("select count(*) from t"), "0");
    assert_eq!(told(&client, "reset windrow.idempotency_key").await, "0");
    assert_eq!(told(&client, insert).await, "1");
    gateway.stop();
}

/// Codes that say that nothing was written and that the same may be tried again, as of every
/// statement while the database is away.
const AWAY: [&str; 4] = ["08001", "08006", "57P03", "57P01"];

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_new_while_the_database_is_away_is_tried_again_under_its_key() {
    for ack in ["commit", "spool"] {
        let (server, directory) = (Postgres::start().unwrap(), spool());
        server.exec(TABLES).unwrap();
        let arguments = ["--pg", "127.0.0.1:0", "--ack", ack];
        let gateway = Gateway::with(&server.url(), directory.path(), &arguments);
        let (client, connection) = sql_config_of(&gateway, &server.url())
            .connect(NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        // The table is known; the texts below are not.
        server.exec("create table plain (id int, v text)").unwrap();
        told(&client, "insert into plain values (0, 'known')").await;
        server.stop().unwrap();
        let simple = "insert into plain (v, id) values ('simple', 1000)";
        let prepared = "insert into plain (id, v) values ($1, $2)";
        let execute = async || {
            let set = told(&client, "set windrow.idempotency_key = 'prepared'").await;
            assert_eq!(set, "0");
            let done = client.execute(prepared, &[&2000, &"prepared"]).await;
            done.map_err(|error| {
                error
                    .code()
                    .map_or(String::new(), |code| code.code().into())
            })
        };
        for _ in 0..2 {
            let answer = under(&client, "simple", simple).await;
            let code = answer.strip_prefix("error ").unwrap_or(&answer);
            assert!(AWAY.contains(&code), "ack={ack}: {answer}");
            told(&client, "reset windrow.idempotency_key").await;
            let code = execute().await.unwrap_err();
            assert!(AWAY.contains(&&*code), "ack={ack}: {code}");
            told(&client, "reset windrow.idempotency_key").await;
        }
        server.restart().unwrap();
        let start = Instant::now();
        loop {
            let answer = under(&client, "simple", simple).await;
            if answer == "1" {
                break;
            }
            assert!(
                start.elapsed() < TEST_TIMEOUT,
                "{answer}\n{}",
                gateway.process.log()
            );
        }
        loop {
            let done = execute().await;
            if done == Ok(1) {
                break;
            }
            assert!(
                start.elapsed() < TEST_TIMEOUT,
                "{done:?}\n{}",
                gateway.process.log()
            );
        }
        assert_eq!(under(&client, "simple", simple).await, "1");
        assert_eq!(execute().await, Ok(1));
        gateway.level().await;
        gateway.stop();
        let rows = server.exec("select id from plain order by id").unwrap();
        assert_eq!(rows, "0\n1000\n2000", "ack={ack}");
    }
}
