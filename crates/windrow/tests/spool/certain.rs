//! `database.certain_outcomes`: what became of a write is found out where its connection to the
//! database is lost while it commits, though its client has given no key.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use windrow_testkit::proxy::{Direction, Proxy};

use crate::sql::{connect, told};
use crate::support::{Db, Gateway, TEST_TIMEOUT, client, spool};

const TABLE: &str = "create table t (id int primary key, v varchar(20), n int default 7)";

/// A gateway that reaches the database through a proxy, and finds out what becomes of writes.
async fn behind_proxy(db: &Db, directory: &Path) -> (Gateway, Proxy) {
    db.sql(TABLE);
    let url = db.url();
    let mut parts = url.split(['@', '/']);
    let upstream = parts.find(|part| part.contains(':') && !part.ends_with(':'));
    let proxy = Proxy::builder(upstream.unwrap()).start().await.unwrap();
    let through = proxy.through(&url).unwrap();
    let settings = directory.join("windrow.toml");
    std::fs::write(&settings, "[database]\ncertain_outcomes = true\n").unwrap();
    let settings = settings.to_str().unwrap();
    let mut more = vec!["--ack", "commit", "--config", settings];
    if url.starts_with("postgres") {
        more.extend(["--pg", "127.0.0.1:0"]);
    }
    let gateway = Gateway::with(&through, &directory.join("spool"), &more);
    (gateway, proxy)
}

async fn insert(gateway: &Gateway, query: &str, id: i32) -> (u16, Json) {
    let url = gateway.process.url(&format!("/v1/tables/t/rows{query}"));
    let row = json!({"id": id, "v": "x"});
    let response = client().post(url).json(&row).send().await.unwrap();
    let replayed = response.headers().contains_key("idempotency-replayed");
    assert!(!replayed, "nobody has sent it twice");
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Keys of the gateway's own are of no use to anybody once their requests are answered.
async fn forgets_its_keys(db: &Db, gateway: &Gateway) {
    let start = Instant::now();
    while db.sql("select count(*) from windrow_idempotency") != "0" {
        assert!(start.elapsed() < TEST_TIMEOUT, "{}", gateway.process.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_over_http_are_told_what_became_of_them() {
    for db in [Db::postgres(), Db::mariadb()] {
        let directory = spool();
        let (gateway, proxy) = behind_proxy(&db, directory.path()).await;
        for id in 0..10 {
            // The table is known and the statements are prepared from the second row on.
            if id > 2 {
                proxy.cut_after(Direction::ToClient, 0);
            }
            let answer = insert(&gateway, "", id).await;
            assert_eq!(answer, (201, json!({"rows": 1})));
            let there = db.sql(&format!("select count(*) from t where id = {id}"));
            assert_eq!(there, "1");
        }
        let (status, told) = insert(&gateway, "", 5).await;
        assert_eq!((status, &told["error"]["code"]), (409, &json!("23505")));
        proxy.cut_after(Direction::ToClient, 0);
        let (status, told) = insert(&gateway, "?returning=n", 20).await;
        // It is executed now; or it was, and then what it gave back is lost with the connection.
        match status {
            201 => assert_eq!(told["returned"]["n"], 7, "{told}"),
            _ => {
                let said = told["error"]["message"].as_str().unwrap();
                assert!(said.contains("the write was committed"), "{told}");
            }
        }
        assert_eq!(db.sql("select count(*) from t"), "11");
        forgets_its_keys(&db, &gateway).await;
        gateway.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_clients_are_told_what_became_of_their_inserts() {
    let (db, directory) = (Db::postgres(), spool());
    let (gateway, proxy) = behind_proxy(&db, directory.path()).await;
    let client = connect(&gateway, &db, "").await;
    for id in 0..10 {
        let insert = format!("insert into t (id, v) values ({id}, 'x')");
        if id > 2 {
            proxy.cut_after(Direction::ToClient, 0);
        }
        assert_eq!(
            told(&client, &insert).await,
            "1",
            "{}",
            gateway.process.log()
        );
    }
    assert_eq!(
        told(&client, "insert into t (id) values (4)").await,
        "error 23505"
    );
    assert_eq!(db.sql("select count(*) from t"), "10");
    forgets_its_keys(&db, &gateway).await;
    gateway.stop();
}
