//! Locks that others hold, connections that end.

use std::time::Duration;

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Unit, Verdict};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_postgres::Postgres;

use crate::support::*;
use windrow_testkit::row;

/// A session of its own, for locks.
pub(crate) async fn session(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

fn quick() -> Options {
    Options {
        lock_wait: Duration::from_millis(50),
        ..Options::default()
    }
}

#[tokio::test]
async fn a_locked_table_holds_up_only_its_own_writes() {
    let mut bed = Bed::with(
        "create table a (id int primary key); create table b (id int primary key)",
        &quick(),
    )
    .await;
    let (a, b) = (insert("a", &["id"]).shape(), insert("b", &["id"]).shape());
    bed.succeed(&[unit(&a, row![0]), unit(&b, row![0])]).await;
    let other = session(bed.database.url()).await;
    other
        .batch_execute("begin; lock table a in access exclusive mode")
        .await
        .unwrap();
    let units: Vec<Unit> = (1..21)
        .map(|n| unit(if n % 2 == 0 { &a } else { &b }, row![n]))
        .collect();
    let report = bed.run(&units).await;
    for (n, verdict) in (1..).zip(&report.verdicts) {
        if n % 2 == 0 {
            assert!(matches!(verdict, Verdict::WaitsForLock(_)), "{verdict:?}");
        } else {
            assert!(matches!(verdict, Verdict::Final(Ok(_))), "{verdict:?}");
        }
    }
}

#[tokio::test]
async fn a_transaction_that_cannot_be_serialized_is_run_again() {
    let mut bed = Bed::with(
        "create table t (id int primary key, a int); insert into t select g, 0 from generate_series(0, 19) g;
         do $$ begin execute format('alter database %I set default_transaction_isolation = ''repeatable read''', current_database()); end $$",
        &Options {
            lock_wait: Duration::from_secs(60),
            ..Options::default()
        },
    )
    .await;
    let other = session(bed.database.url()).await;
    other
        .batch_execute("begin; update t set a = 1 where id = 7")
        .await
        .unwrap();
    let set = update("t", &["a"]).shape();
    let units: Vec<Unit> = (0..20).map(|n| unit(&set, row![5, n])).collect();
    let mut executor = bed.connect().await;
    let task = tokio::spawn(async move { executor.execute(&units).await });
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    eventually("the batch waits", || bed.sql(waits) == "1").await;
    other.batch_execute("commit").await.unwrap();
    let report = task.await.unwrap();
    assert!(report.usable);
    for verdict in &report.verdicts {
        assert!(
            matches!(verdict, Verdict::RolledBack(f) if f.code == "40001" && f.class == FaultClass::Conflict),
            "{verdict:?}"
        );
    }
    assert_eq!(bed.sql("select sum(a) from t"), "1");
    bed.succeed(&[unit(&set, row![6, 7])]).await;
}

#[tokio::test]
async fn a_connection_that_is_ended_while_a_batch_runs_was_not_committed() {
    let mut bed = Bed::with(
        "create table t (id int primary key, a int); insert into t select g, 0 from generate_series(0, 19) g",
        &Options {
            lock_wait: Duration::from_secs(60),
            ..Options::default()
        },
    )
    .await;
    let other = session(bed.database.url()).await;
    other
        .batch_execute("begin; update t set a = 1 where id = 7")
        .await
        .unwrap();
    let set = update("t", &["a"]).shape();
    let units: Vec<Unit> = (0..20).map(|n| unit(&set, row![5, n])).collect();
    let mut executor = bed.connect().await;
    let task = tokio::spawn(async move { executor.execute(&units).await });
    let waits =
        "from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    eventually("the batch waits", || {
        bed.sql(&format!("select count(*) {waits}")) == "1"
    })
    .await;
    bed.sql(&format!("select pg_terminate_backend(pid) {waits}"));
    let report = task.await.unwrap();
    assert!(!report.usable);
    for verdict in &report.verdicts {
        assert!(
            matches!(verdict, Verdict::RolledBack(f) if f.class == FaultClass::Unavailable),
            "{verdict:?}"
        );
    }
    other.batch_execute("rollback").await.unwrap();
    assert_eq!(bed.sql("select sum(a) from t"), "0");
    bed.succeed(&[unit(&set, row![1, 1])]).await;
}

#[tokio::test]
async fn an_idle_connection_that_was_ended_says_so_and_wrote_nothing() {
    let mut bed = Bed::new("create table t (id int primary key)").await;
    let shape = insert("t", &["id"]).shape();
    bed.succeed(&[unit(&shape, row![1])]).await;
    bed.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'windrow' and datname = current_database()");
    let report = bed
        .run(&[unit(&shape, row![2]), unit(&shape, row![3])])
        .await;
    assert!(!report.usable);
    for verdict in &report.verdicts {
        assert!(matches!(verdict, Verdict::RolledBack(_)), "{verdict:?}");
    }
    assert_eq!(bed.sql("select count(*) from t"), "1");
}

#[tokio::test]
async fn what_was_sent_and_never_answered_is_unknown() {
    let server = windrow_testkit::postgres::Postgres::start().unwrap();
    server
        .exec("create table t (id int primary key); create table u (id int primary key)")
        .unwrap();
    let sink = Driver::open(&Postgres, &server.url(), &Options::default())
        .await
        .unwrap();
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let shape = insert("t", &["id"]).shape();
    let batch = |from: i32| -> Vec<Unit> {
        let units = (from..from + 20).map(|n| unit(&shape, row![n]));
        units.chain([unit(&get("t").shape(), row![1])]).collect()
    };
    for verdict in executor.execute(&batch(0)).await.verdicts {
        told(verdict).unwrap();
    }
    server.pause().unwrap();
    let mut units = batch(100);
    let read = vec![units.pop().unwrap()];
    let task = tokio::spawn(async move { executor.execute(&units).await });
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(!task.is_finished());
    server.kill9().unwrap();
    let report = task.await.unwrap();
    assert!(!report.usable);
    for verdict in report.verdicts {
        let outcome = told(verdict);
        assert_eq!(
            (fault(&outcome).class, &*fault(&outcome).code),
            (FaultClass::Unknown, "08007")
        );
    }
    server.restart().unwrap();
    let mut again = sink.connect(Purpose::Batches).await.unwrap();
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
        "a read loses nothing"
    );
}

#[tokio::test]
async fn a_sign_of_life() {
    let bed = Bed::new("select 1").await;
    bed.sink.ping().await.unwrap();
    let nobody = Driver::open(
        &Postgres,
        "postgres://nobody@127.0.0.1:1/x",
        &Options::default(),
    )
    .await
    .unwrap();
    assert_eq!(
        nobody.ping().await.unwrap_err().class,
        FaultClass::Unavailable
    );
}
