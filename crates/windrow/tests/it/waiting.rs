//! Writes over HTTP that wait for somebody else's lock: clients that leave, and the database's own
//! time limits.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use serde_json::json;
use windrow::{Statement, Writer};

use crate::support::{Db, Gateway, TEST_TIMEOUT, code, connect};

const LOCK: &str = "begin; select v from lk where id = 1 for update";
const WAITING: &str = "select count(distinct pid) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'";

async fn locked() -> (Db, tokio_postgres::Client) {
    let db = Db::postgres().await;
    db.run("create table lk (id int primary key, v int); insert into lk values (1, 0)")
        .await;
    let holder = connect(&db.url()).await;
    holder.batch_execute(LOCK).await.unwrap();
    (db, holder)
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < TEST_TIMEOUT, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Changes the locked row.
async fn change(gateway: &Gateway) -> (u16, serde_json::Value) {
    let body = Some(json!({"v": 7}).to_string());
    gateway.send("PATCH", "/v1/tables/lk/rows/1", body).await
}

#[tokio::test]
async fn who_disconnects_waits_no_longer() {
    let (db, holder) = locked().await;
    let gateway = Gateway::to(&db.url()).await;
    // The request is dropped while it waits, and its connection with it. A client that has closed
    // only its sending side looks the same, so it is given a moment.
    tokio::select! {
        answer = change(&gateway) => panic!("{answer:?}"),
        () = until("the write waits", async || db.number(WAITING).await == 1) => {}
    }
    until("it is given up", async || {
        let (_, lanes) = gateway.send("GET", "/v1/lanes", None).await;
        let totals = &lanes["lanes"][0]["totals"];
        let count = |name: &str| totals[name].as_u64().unwrap();
        count("abandoned") + count("failed") > 0
    })
    .await;
    until("nobody waits", async || db.number(WAITING).await == 0).await;
    holder.batch_execute("commit").await.unwrap();
    db.run("begin; lock table lk; commit").await;
    assert_eq!(db.number("select v from lk").await, 0);
    let (status, answer) = change(&gateway).await;
    assert_eq!((status, &answer["rows"]), (200, &json!(1)));
    gateway.stop().await;
}

#[tokio::test]
async fn the_time_limits_of_the_connection_string_are_kept() {
    let (db, holder) = locked().await;
    for (setting, expected) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
        let url = format!("{}?options=-c%20{setting}%3D700", db.url());
        let gateway = Gateway::to(&url).await;
        let start = Instant::now();
        let (_, answer) = change(&gateway).await;
        assert_eq!(code(&answer), expected, "{answer}");
        assert!(start.elapsed() >= Duration::from_millis(650));
        assert_eq!(db.number(WAITING).await, 0);
        gateway.stop().await;
    }
    holder.batch_execute("commit").await.unwrap();
    assert_eq!(db.number("select v from lk").await, 0);
}

/// A read over HTTP is answered while writes wait for another process, as SQLite itself reads then.
#[tokio::test]
async fn reads_of_sqlite_wait_for_no_other_process() {
    let db = Db::sqlite();
    db.run("create table lk (id integer primary key, v int); insert into lk values (1, 0)")
        .await;
    let gateway = Gateway::to(&db.url()).await;
    let writer = Writer::open(db.url()).await.unwrap();
    let get = writer.table(Statement::get("lk").unwrap());
    db.run("begin immediate; update lk set v = 1").await;
    let mut change = std::pin::pin!(change(&gateway));
    tokio::select! {
        biased;
        answer = &mut change => panic!("{answer:?}"),
        () = until("the write is under way", async || flights(&gateway).await == 1) => {}
    }
    let reads = async {
        let (status, answer) = gateway.send("GET", "/v1/tables/lk/rows/1", None).await;
        assert_eq!((status, &answer["v"]), (200, &json!(0)));
        let body = json!({"operations": [{"op": "get", "table": "lk", "key": 1}]});
        let (status, answer) = gateway
            .send("POST", "/v1/batch", Some(body.to_string()))
            .await;
        assert_eq!(
            (status, &answer["results"][0]["row"]["v"]),
            (200, &json!(0))
        );
        let (status, answer) = gateway.send("GET", "/readyz", None).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(get.write([1.into()]).await.unwrap().rows, 1);
    };
    tokio::select! {
        biased;
        answer = &mut change => panic!("{answer:?}"),
        () = reads => {}
    }
    db.run("commit").await;
    let (status, answer) = change.await;
    assert_eq!((status, &answer["rows"]), (200, &json!(1)), "{answer}");
    let (_, answer) = gateway.send("GET", "/v1/tables/lk/rows/1", None).await;
    assert_eq!(answer["v"], 7);
    writer.close().await;
}

async fn flights(gateway: &Gateway) -> u64 {
    let (_, lanes) = gateway.send("GET", "/v1/lanes", None).await;
    lanes["lanes"][0]["flights"].as_u64().unwrap()
}

/// A lock of another session on a table keeps nobody from reading another one.
#[tokio::test]
async fn reads_wait_for_no_lock_on_another_table() {
    const SCHEMA: &str = "create table lk (id int primary key, v int);
        create table free (id int primary key, v int);
        insert into lk values (1, 0); insert into free values (1, 0)";
    let db = Db::postgres().await;
    db.run(SCHEMA).await;
    let holder = connect(&db.url()).await;
    holder.batch_execute("begin; lock table lk").await.unwrap();
    reads_beside_a_lock(&db.url(), async {
        holder.batch_execute("commit").await.unwrap();
    })
    .await;

    let mariadb = tokio::task::spawn_blocking(|| windrow_testkit::mariadb::shared().unwrap());
    let mariadb = mariadb.await.unwrap();
    mariadb.exec(SCHEMA).unwrap();
    let mut holder = mysql_async::Conn::from_url(mariadb.url()).await.unwrap();
    holder.query_drop("lock tables lk write").await.unwrap();
    reads_beside_a_lock(mariadb.url(), async {
        holder.query_drop("unlock tables").await.unwrap();
    })
    .await;
}

async fn reads_beside_a_lock(url: &str, unlock: impl Future<Output = ()>) {
    let gateway = Gateway::to(url).await;
    let writes = futures_util::future::join_all((0..8).map(|_| change(&gateway)));
    let mut writes = std::pin::pin!(writes);
    let reads = async {
        for _ in 0..8 {
            let (status, answer) = gateway.send("GET", "/v1/tables/free/rows/1", None).await;
            assert_eq!((status, &answer["v"]), (200, &json!(0)));
        }
    };
    tokio::select! {
        biased;
        answers = &mut writes => panic!("{answers:?}"),
        () = reads => {}
    }
    unlock.await;
    for (status, answer) in writes.await {
        assert_eq!(status, 200, "{answer}");
    }
}
