//! Connections that end, servers that do not allow it.

use mysql_async::prelude::Queryable as _;
use windrow_core::{FaultClass, LoadFault};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;
use windrow_testkit::mariadb::MariaDb;

use crate::support::*;

const TABLE: &str = "create table t (id int primary key);";

/// Ends all other connections to a database.
async fn kill_all(bed: &Bed) {
    let mut conn = session(bed.database.url()).await;
    let others = "select id from information_schema.processlist where db = database() and id <> connection_id()";
    let ids: Vec<u64> = conn.query(others).await.unwrap();
    for id in ids {
        conn.query_drop(format!("kill {id}")).await.ok();
    }
    conn.disconnect().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_was_killed_before_wrote_nothing() {
    let bed = Bed::new(TABLE).await;
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    kill_all(&bed).await;
    for _ in 0..2 {
        let outcome = loader.load(&texts(&[&["1"]]), None).await;
        assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
    }
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let bad = texts(&[&["bad"]]);
    assert_eq!(loader.filter(&bad, None).await.unwrap().left, [0]);
    kill_all(&bed).await;
    for _ in 0..2 {
        let outcome = loader.filter(&texts(&[&["1"], &["bad"]]), None).await;
        assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
    }
    assert_eq!(bed.sql("select count(*) from t").trim(), "0");
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    assert_eq!(
        loader.load(&texts(&[&["1"]]), None).await.unwrap().written,
        1
    );
}

#[tokio::test]
async fn a_connection_that_is_killed_in_between_makes_no_wrong_claim() {
    let bed = Bed::new(TABLE).await;
    // A row of somebody else holds the portion up in the middle.
    let mut other = session(bed.database.url()).await;
    other.query_drop("begin").await.unwrap();
    other.query_drop("insert into t values (2)").await.unwrap();
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let rows = texts(&[&["1"], &["2"], &["3"]]);
    let mut killer = session(bed.database.url()).await;
    let kill = async {
        let waits = "select id from information_schema.processlist where db = database() and info like 'LOAD DATA%'";
        loop {
            let waiting: Option<u64> = killer.query_first(waits).await.unwrap();
            if let Some(id) = waiting {
                killer.query_drop(format!("kill {id}")).await.unwrap();
                break;
            }
        }
    };
    let (outcome, ()) = tokio::join!(loader.load(&rows, None), kill);
    assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
    other.query_drop("rollback").await.unwrap();
    // Whatever the loader had written is undone when its connection is gone.
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    assert_eq!(loader.load(&rows, None).await.unwrap().written, 3);
}

#[tokio::test]
async fn a_deadlock_may_be_tried_again() {
    let bed =
        Bed::new("create table t (id int primary key); insert into t values (10), (20);").await;
    let mut other = session(bed.database.url()).await;
    other
        .query_drop("set innodb_lock_wait_timeout = 50")
        .await
        .unwrap();
    other.query_drop("begin").await.unwrap();
    other.query_drop("insert into t values (2)").await.unwrap();
    other
        .query_drop("update t set id = id + 1 where id = 20")
        .await
        .unwrap();
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let mut watcher = session(bed.database.url()).await;
    let cross = async {
        // The tables that tell who waits are renewed only where nobody asks them for a while.
        loop {
            let status: Option<(String, String, String)> = watcher
                .query_first("show engine innodb status")
                .await
                .unwrap();
            let status = status.unwrap().2;
            if status.contains("LOCK WAIT") && status.contains("LOAD DATA LOCAL") {
                break;
            }
        }
        let locks = "select * from t where id = 1 for update";
        let won = other.query_drop(locks).await.is_ok();
        other.query_drop("rollback").await.unwrap();
        won
    };
    let rows = texts(&[&["1"], &["2"]]);
    let (outcome, other_won) = tokio::join!(loader.load(&rows, None), cross);
    match outcome {
        Ok(loaded) => assert_eq!(loaded.written, 2, "{other_won}"),
        Err(LoadFault::Again(_)) => assert_eq!(bed.sql("select count(*) from t").trim(), "2"),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_does_not_allow_it_is_left_to_the_lane() {
    let server = MariaDb::builder().set("local-infile", "0").start().unwrap();
    let url = server.create_database().unwrap();
    windrow_testkit::mariadb::sql(&url, TABLE).unwrap();
    let sink = Driver::open(&Mysql, &url, &Options::default())
        .await
        .unwrap();
    let bulk = sink.bulk().unwrap();
    let fault = bulk.loader(&plan("t", &["id"])).await.err().unwrap();
    assert_eq!(fault.class, FaultClass::Unsupported);
    // What can be told of the table can be told all the same.
    assert!(bulk.columns(&plan("t", &[]).table).await.unwrap().is_some());
}
