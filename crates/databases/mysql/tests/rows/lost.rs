//! Locks that others hold, deadlocks, connections that end.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Unit, Verdict};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;
use windrow_testkit::mariadb::{MariaDb, sql};

use crate::support::*;
use windrow_testkit::row;

const TABLE: &str =
    "create table t (id int primary key, a int); insert into t select seq, 0 from seq_0_to_19";

fn patient() -> Options {
    Options {
        lock_wait: Duration::from_secs(60),
        ..Options::default()
    }
}

fn sets(shape: &std::sync::Arc<windrow_core::Shape>) -> Vec<Unit> {
    (0..20).map(|n| unit(shape, row![5, n])).collect()
}

#[tokio::test]
async fn an_insert_behind_somebody_elses_waits_for_its_fate() {
    let mut bed = Bed::new("create table t (id int primary key, a int)").await;
    let mut other = session(bed.database.url()).await;
    other.query_drop("begin").await.unwrap();
    other
        .query_drop("insert into t values (7, 1)")
        .await
        .unwrap();
    let put = insert("t", &["id", "a"]).shape();
    let units: Vec<Unit> = (0..20).map(|n| unit(&put, row![n, 5])).collect();
    let report = bed.run(&units).await;
    for (n, verdict) in report.verdicts.iter().enumerate() {
        match verdict {
            Verdict::WaitsForLock(_) => assert_eq!(n, 7),
            Verdict::Final(outcome) => assert!(outcome.is_ok(), "{n}: {outcome:?}"),
            other => panic!("{n}: {other:?}"),
        }
    }
    other.query_drop("rollback").await.unwrap();
    assert_eq!(bed.sql("select count(*) from t"), "19");
}

#[tokio::test]
async fn a_locked_table_holds_up_only_its_own_writes() {
    let mut bed =
        Bed::new("create table a (id int primary key); create table b (id int primary key)").await;
    let (a, b) = (insert("a", &["id"]).shape(), insert("b", &["id"]).shape());
    bed.succeed(&[unit(&a, row![0]), unit(&b, row![0])]).await;
    let mut other = session(bed.database.url()).await;
    other.query_drop("lock tables a write").await.unwrap();
    let units: Vec<Unit> = (1..21)
        .map(|n| unit(if n % 2 == 0 { &a } else { &b }, row![n]))
        .collect();
    let report = bed.run(&units).await;
    other.query_drop("unlock tables").await.unwrap();
    for (n, verdict) in (1..).zip(&report.verdicts) {
        if n % 2 == 0 {
            assert!(matches!(verdict, Verdict::WaitsForLock(_)), "{verdict:?}");
        } else {
            assert!(matches!(verdict, Verdict::Final(Ok(_))), "{verdict:?}");
        }
    }
}

#[tokio::test]
async fn the_victim_of_a_deadlock_is_run_again() {
    let bed = Bed::with(TABLE, &patient()).await;
    let mut other = session(bed.database.url()).await;
    other.query_drop("begin").await.unwrap();
    // Who has changed more rows is not chosen as the victim.
    other
        .query_drop("create temporary table many (a int)")
        .await
        .unwrap();
    other
        .query_drop("update t set a = a + 1 where id > 9")
        .await
        .unwrap();
    for _ in 0..3 {
        other
            .query_drop("update t set a = a + 1 where id > 9")
            .await
            .unwrap();
    }
    let set = update("t", &["a"]).shape();
    let units = sets(&set);
    let mut executor = bed.connect().await;
    let run = units.clone();
    let task = tokio::spawn(async move { (executor.execute(&run).await, executor) });
    eventually("the batch waits", || waits(&bed)).await;
    other
        .query_drop("update t set a = 9 where id = 0")
        .await
        .unwrap();
    let (report, mut executor) = task.await.unwrap();
    assert!(report.usable);
    for verdict in &report.verdicts {
        assert!(
            matches!(verdict, Verdict::RolledBack(f) if f.code == "40P01" && f.class == FaultClass::Conflict),
            "{verdict:?}"
        );
    }
    other.query_drop("rollback").await.unwrap();
    for verdict in executor.execute(&units).await.verdicts {
        assert_eq!(told(verdict).unwrap()[0].rows, 1);
    }
    assert_eq!(bed.sql("select sum(a) from t"), "100");
}

/// The numbers of the sink's connections.
const OWN: &str = "select id from information_schema.processlist where db = database() and id <> connection_id() and user = 'root'";

#[tokio::test]
async fn a_connection_that_is_killed_while_a_batch_runs_was_not_committed() {
    let mut bed = Bed::with(TABLE, &patient()).await;
    let ours = bed.sql(OWN);
    let mut other = session(bed.database.url()).await;
    other.query_drop("begin").await.unwrap();
    other
        .query_drop("update t set a = 1 where id = 7")
        .await
        .unwrap();
    let set = update("t", &["a"]).shape();
    let units = sets(&set);
    let run = units.clone();
    let next = bed.connect().await;
    let mut executor = std::mem::replace(&mut bed.executor, next);
    let task = tokio::spawn(async move { executor.execute(&run).await });
    eventually("the batch waits", || waits(&bed)).await;
    bed.sql(&format!("kill {ours}"));
    let report = task.await.unwrap();
    assert!(!report.usable);
    for verdict in &report.verdicts {
        assert!(
            matches!(verdict, Verdict::RolledBack(f) if f.class == FaultClass::Unavailable),
            "{verdict:?}"
        );
    }
    other.query_drop("rollback").await.unwrap();
    assert_eq!(bed.sql("select sum(a) from t"), "0");
    bed.succeed(&units).await;
    assert_eq!(bed.sql("select sum(a) from t"), "100");
}

#[tokio::test]
async fn an_idle_connection_that_was_ended_says_so_and_wrote_nothing() {
    let mut bed = Bed::new("create table t (id int primary key)").await;
    let shape = insert("t", &["id"]).shape();
    bed.succeed(&[unit(&shape, row![1])]).await;
    let connections = || bed.sql(&OWN.replace("select id", "select count(*)"));
    bed.sql(&format!("kill {}", bed.sql(OWN)));
    // KILL does not wait for the end. A statement that is sent before it may have been written.
    eventually("it has ended", || connections() == "0").await;
    let several = Unit::of([write(&shape, row![2]), write(&shape, row![3])]);
    let report = bed.run(&[several]).await;
    assert!(!report.usable);
    assert!(
        matches!(report.verdicts[0], Verdict::RolledBack(_)),
        "{report:?}"
    );
    assert_eq!(bed.sql("select count(*) from t"), "1");
}

#[tokio::test]
async fn what_was_sent_and_never_answered_is_unknown() {
    let server = MariaDb::start().unwrap();
    let url = server.create_database().unwrap();
    sql(&url, "create table t (id int primary key)").unwrap();
    let sink = Driver::open(&Mysql, &url, &Options::default())
        .await
        .unwrap();
    let shape = insert("t", &["id"]).shape();
    // A statement that is a transaction of its own: whatever becomes of it was under way with its
    // commit. If the table was looked at more than a second ago, it is looked at first, and nothing
    // was written: then it is tried again.
    for first in (0..).step_by(1000) {
        let batch = |from: i32| -> Vec<Unit> {
            let ids = first + from..first + from + 16;
            ids.map(|n| unit(&shape, row![n])).collect()
        };
        let mut executor = sink.connect(Purpose::Batches).await.unwrap();
        for verdict in executor.execute(&batch(0)).await.verdicts {
            told(verdict).unwrap();
        }
        server.pause().unwrap();
        let units = batch(100);
        let task = tokio::spawn(async move { executor.execute(&units).await });
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert!(!task.is_finished());
        server.kill9().unwrap();
        let report = task.await.unwrap();
        assert!(!report.usable);
        server.restart().unwrap();
        let is_undone = |verdict: &Verdict| matches!(verdict, Verdict::RolledBack(_));
        if report.verdicts.iter().all(is_undone) && first < 20_000 {
            continue;
        }
        for verdict in report.verdicts {
            let outcome = told(verdict);
            assert_eq!(
                (fault(&outcome).class, &*fault(&outcome).code),
                (FaultClass::Unknown, "08007")
            );
        }
        break;
    }
    let mut again = sink.connect(Purpose::Batches).await.unwrap();
    let read = vec![unit(&get("t").shape(), row![1])];
    told(again.execute(&read).await.verdicts.remove(0)).unwrap();
    server.pause().unwrap();
    let task = tokio::spawn(async move { again.execute(&read).await });
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    server.kill9().unwrap();
    let report = task.await.unwrap();
    assert!(
        matches!(report.verdicts[0], Verdict::RolledBack(_)),
        "a read loses nothing: {report:?}"
    );
}
