//! Databases that can only be read: not ready, with the reason, and read from all the same.

use serde_json::json;
use windrow_testkit::mariadb::MariaDb;
use windrow_testkit::postgres::Postgres;

use crate::support::{Db, Gateway, code, connect};

const TABLE: &str = "create table t (id int primary key, v int); insert into t values (1, 0)";

/// Asserts that the gateway is not ready, for a reason that contains these words.
async fn is_not_ready(gateway: &Gateway, words: &[&str]) {
    let (status, answer) = gateway.send("GET", "/readyz", None).await;
    assert_eq!((status, code(&answer)), (503, "25006"), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "{message}");
    }
    let (status, answer) = gateway.send("GET", "/v1/tables/t/rows/1", None).await;
    assert_eq!((status, &answer["v"]), (200, &json!(0)), "{answer}");
    let (status, answer) = gateway.insert("t", r#"{"id": 2}"#).await;
    assert_eq!((status, code(&answer)), (503, "25006"), "{answer}");
}

async fn is_ready(gateway: &Gateway) {
    let (status, answer) = gateway.send("GET", "/readyz", None).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn postgresql_whose_transactions_are_read_only_is_not_ready() {
    let db = Db::postgres().await;
    db.run(TABLE).await;
    let set = "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$";
    db.run(set).await;
    let gateway = Gateway::to(&db.url()).await;
    is_not_ready(
        &gateway,
        &["default_transaction_read_only", "set it to off"],
    )
    .await;
    db.run(&set.replace("= on", "= off")).await;
    is_ready(&gateway).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_standby_is_not_ready() {
    let server = Postgres::start().unwrap();
    connect(&server.url())
        .await
        .batch_execute(TABLE)
        .await
        .unwrap();
    server.stop().unwrap();
    std::fs::write(server.data().join("standby.signal"), "").unwrap();
    server.restart().unwrap();
    let gateway = Gateway::to(&server.url()).await;
    is_not_ready(&gateway, &["standby", "primary"]).await;
    let promote = "select pg_promote()";
    connect(&server.url())
        .await
        .batch_execute(promote)
        .await
        .unwrap();
    is_ready(&gateway).await;
    gateway.stop().await;
}

#[tokio::test]
async fn mariadb_that_is_read_only_for_the_user_is_not_ready() {
    let server = MariaDb::start().unwrap();
    let url = server.create_database().unwrap();
    let own = windrow_testkit::mariadb::sql;
    own(&url, TABLE).unwrap();
    own(
        &url,
        "create user app@'%'; grant select, insert on *.* to app@'%'; set global read_only = 1",
    )
    .unwrap();
    let gateway = Gateway::to(&url.replace("root@", "app@")).await;
    is_not_ready(&gateway, &["read_only", "set read_only to 0"]).await;
    // A user who may write all the same.
    let root = Gateway::to(&url).await;
    is_ready(&root).await;
    own(&url, "set global read_only = 0").unwrap();
    is_ready(&gateway).await;
    root.stop().await;
    gateway.stop().await;
}
