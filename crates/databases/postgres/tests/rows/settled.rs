//! What earlier processes may still have under way is waited for, and nothing else.

use std::time::Duration;

use tokio::time::timeout;

use crate::lost::session;
use crate::support::*;

const TABLE: &str = "create table t (id int primary key, a int); insert into t values (1, 0)";

/// Statements of others that wait.
const WAITS: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'";

/// Runs `held` in a transaction, then an update that meets it.
async fn is_waited_for(held: &str) {
    let bed = Bed::new(TABLE).await;
    let holds = session(bed.database.url()).await;
    for sql in ["begin", held] {
        holds.batch_execute(sql).await.unwrap();
    }
    let waits = session(bed.database.url()).await;
    let waiting = tokio::spawn(async move { waits.batch_execute("update t set a = 11").await });
    eventually("the statement waits", || bed.sql(WAITS) == "1").await;
    let inventory = bed.sink.inventory().unwrap();
    let mut settled = std::pin::pin!(inventory.settled());
    let early = timeout(Duration::from_millis(300), &mut settled).await;
    assert!(early.is_err(), "a statement was under way");
    holds.batch_execute("commit").await.unwrap();
    settled.await.unwrap();
    assert_eq!(bed.sql("select a from t"), "11");
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_statement_that_waits_for_a_row_is_waited_for() {
    is_waited_for("update t set a = 1").await;
}

/// It has no transaction number yet.
#[tokio::test]
async fn a_statement_that_waits_for_a_table_is_waited_for() {
    is_waited_for("lock table t in share mode").await;
}

#[tokio::test]
async fn who_reads_is_not_waited_for() {
    let bed = Bed::new(TABLE).await;
    let reads = session(bed.database.url()).await;
    for sql in ["begin", "select a from t", "select pg_current_xact_id()"] {
        reads.batch_execute(sql).await.unwrap();
    }
    bed.sink.inventory().unwrap().settled().await.unwrap();
}
