//! The database is away: writes are taken all the same, and are there once it is back.

use rusqlite::Connection;
use serde_json::{Value as Json, json};
use windrow_testkit::command;
use windrow_testkit::mariadb::{self, MariaDb};
use windrow_testkit::postgres::{Postgres, psql};

use crate::support::{Db, Gateway, draining, spool};

const TABLE: &str = "create table readings (id int, note varchar(100))";

fn rows(ids: std::ops::Range<u64>) -> Vec<Json> {
    ids.map(|id| json!({"id": id, "note": "x"})).collect()
}

async fn taken(gateway: &Gateway, ids: std::ops::Range<u64>) {
    for part in rows(ids).chunks(20) {
        let (status, answer) = gateway.rows("readings", part).await;
        assert_eq!(status, 202, "{answer}");
    }
}

/// Rows are taken before the database goes away, while it is, and by a gateway that is started
/// meanwhile; `back` brings it back.
async fn outage(url: &str, away: impl FnOnce(), back: impl FnOnce()) {
    let directory = spool();
    let gateway = Gateway::start(url, directory.path());
    taken(&gateway, 0..100).await;
    gateway.level().await;
    away();
    taken(&gateway, 100..200).await;
    gateway
        .spool_until("it is told that the database is away", |spool| {
            spool["state"] == "waiting" && spool["why"].is_string()
        })
        .await;
    let (status, answer) = gateway.get("/readyz").await;
    assert_eq!(status, 200, "it takes writes: {answer}");
    gateway.kill9();
    let gateway = Gateway::start(url, directory.path());
    let said = gateway.process.log();
    assert!(said.contains("entries kept"), "{said}");
    taken(&gateway, 200..300).await;
    let said = gateway.stop();
    assert!(said.contains("not in the database yet"), "{said}");
    let gateway = Gateway::start(url, directory.path());
    taken(&gateway, 300..400).await;
    back();
    gateway.level().await;
    let metrics = gateway.get("/metrics").await.1;
    let metrics = metrics.as_str().unwrap();
    assert!(
        metrics.contains("windrow_spool_entries{partition=\"0\"}"),
        "{metrics}"
    );
    gateway.stop();
}

const COUNTED: &str = "select count(*), count(distinct id) from readings";

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_goes_and_comes_back() {
    let server = Postgres::start().unwrap();
    let url = server.url();
    server.exec(TABLE).unwrap();
    let (away, back) = (|| server.stop().unwrap(), || server.restart().unwrap());
    outage(&url, away, back).await;
    assert_eq!(psql(&url, COUNTED).unwrap().trim_end(), "400|400");
}

#[tokio::test(flavor = "multi_thread")]
async fn mariadb_goes_and_comes_back() {
    let server = MariaDb::start().unwrap();
    let url = server.create_database().unwrap();
    mariadb::sql(&url, TABLE).unwrap();
    let (away, back) = (|| server.kill9().unwrap(), || server.restart().unwrap());
    outage(&url, away, back).await;
    assert_eq!(mariadb::sql(&url, COUNTED).unwrap().trim_end(), "400|400");
}

/// Somebody else holds the file's only lock.
#[tokio::test(flavor = "multi_thread")]
async fn an_sqlite_file_is_held_by_somebody_else() {
    let db = Db::sqlite();
    db.sql(TABLE);
    let directory = spool();
    let gateway = Gateway::start(&db.url(), directory.path());
    taken(&gateway, 0..100).await;
    gateway.level().await;
    let held: Connection = db.open();
    held.execute_batch("begin immediate").unwrap();
    taken(&gateway, 100..200).await;
    assert_eq!(db.sql(COUNTED), "100|100");
    held.execute_batch("commit").unwrap();
    gateway.level().await;
    gateway.stop();
    assert_eq!(db.sql(COUNTED), "200|200");
}

/// A database that says nothing at all holds up neither writes nor the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_does_not_answer_is_not_waited_for() {
    let server = Postgres::start().unwrap();
    server.exec(TABLE).unwrap();
    let directory = spool();
    let gateway = Gateway::start(&server.url(), directory.path());
    taken(&gateway, 0..100).await;
    gateway.level().await;
    server.pause().unwrap();
    taken(&gateway, 100..200).await;
    let said = gateway.stop();
    assert!(said.contains("not in the database yet"), "{said}");
    server.resume();
    command::run(&mut draining(&server.url(), directory.path())).ends(0);
    let counted = psql(&server.url(), COUNTED).unwrap();
    assert_eq!(counted.trim_end(), "200|200");
}
