//! What earlier processes may still have under way is waited for, and nothing else.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use tokio::time::timeout;

use crate::support::*;

const TABLE: &str = "create table t (id int primary key, a int); insert into t values (1, 0)";

#[tokio::test]
async fn a_statement_that_waits_is_waited_for() {
    let bed = Bed::new(TABLE).await;
    let mut holds = session(bed.database.url()).await;
    holds.query_drop("begin").await.unwrap();
    holds.query_drop("update t set a = 1").await.unwrap();
    let mut second = session(bed.database.url()).await;
    let waiting = tokio::spawn(async move { second.query_drop("update t set a = a + 10").await });
    eventually("the statement waits", || waits(&bed)).await;
    let inventory = bed.sink.inventory().unwrap();
    let mut settled = std::pin::pin!(inventory.settled());
    let early = timeout(Duration::from_millis(300), &mut settled).await;
    assert!(early.is_err(), "a statement was under way");
    holds.query_drop("commit").await.unwrap();
    settled.await.unwrap();
    assert_eq!(bed.sql("select a from t"), "11");
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn transactions_that_do_nothing_for_now_are_not() {
    let bed = Bed::new(TABLE).await;
    let (mut reads, mut has_written) = (
        session(bed.database.url()).await,
        session(bed.database.url()).await,
    );
    for sql in ["begin", "select a from t"] {
        reads.query_drop(sql).await.unwrap();
    }
    for sql in ["begin", "update t set a = 1"] {
        has_written.query_drop(sql).await.unwrap();
    }
    bed.sink.inventory().unwrap().settled().await.unwrap();
    // What they hold would keep the database from being dropped.
    for other in [reads, has_written] {
        other.disconnect().await.unwrap();
    }
}
