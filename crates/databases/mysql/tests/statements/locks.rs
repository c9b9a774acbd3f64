//! Locks that others hold, and deadlocks.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Sink, Unit, Verdict};
use windrow_database::Options;
use windrow_mysql::ClientSink;

use crate::support::*;

const TABLE: &str = "create table t (id int primary key, a int)";

async fn session(bed: &Bed) -> mysql_async::Conn {
    mysql_async::Conn::from_url(bed.database.url())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_row_that_is_locked_waits() {
    let mut bed = Bed::new(TABLE).await;
    let mut other = session(&bed).await;
    other.query_drop("begin").await.unwrap();
    other
        .query_drop("insert into t values (7, 1)")
        .await
        .unwrap();
    let put = bed.describe(insert("t", &["id", "a"])).await;
    let call = |n: i32| unit(text(&put, &[&n.to_string(), "1"]));
    let units: Vec<_> = (0..20).map(call).collect();
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
    let mut patient = bed.sink.connect(Purpose::LockWait).await.unwrap();
    let report = patient.execute(&units[7..8]).await;
    assert_eq!(told(report.verdicts[0].clone()).unwrap()[0].rows, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_gets_the_servers_error() {
    let bed = Bed::with(TABLE, &[("innodb_lock_wait_timeout", "1")], |_| {}).await;
    bed.sql("insert into t values (1, 1)");
    let mut other = session(&bed).await;
    other.query_drop("begin").await.unwrap();
    other.query_drop("update t set a = 2").await.unwrap();
    let set = bed.describe(update("t", "a", "id")).await;
    let mut patient = bed.sink.connect(Purpose::LockWait).await.unwrap();
    let report = patient.execute(&[unit(text(&set, &["5", "1"]))]).await;
    let outcome = told(report.verdicts[0].clone());
    let error = error(&outcome);
    assert_eq!((error.number, &error.state), (1205, b"HY000"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_a_unit_that_waits_is_not_tried() {
    let mut bed = Bed::new(TABLE).await;
    bed.sql("insert into t values (1, 1), (2, 1), (3, 1)");
    let mut other = session(&bed).await;
    other.query_drop("begin").await.unwrap();
    other
        .query_drop("update t set a = 2 where id = 1")
        .await
        .unwrap();
    let set = bed.describe(update("t", "a", "id")).await;
    let units = [
        unit_of(1, text(&set, &["5", "1"])),
        unit_of(1, text(&set, &["5", "2"])),
        unit_of(2, text(&set, &["5", "3"])),
    ];
    let report = bed.run(&units).await;
    let [first, second, third] = &report.verdicts[..] else {
        panic!("{report:?}")
    };
    assert!(matches!(first, Verdict::WaitsForLock(_)), "{first:?}");
    assert_eq!(*second, Verdict::NotTried);
    assert_eq!(told(third.clone()).unwrap()[0].rows, 1);
    assert_eq!(
        bed.sql("select group_concat(a order by id) from t"),
        "1,1,5"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_victim_of_a_deadlock_is_run_again() {
    let bed = Bed::new(TABLE).await;
    let rows: Vec<_> = (0..20).map(|n| format!("({n}, 0)")).collect();
    bed.sql(&format!("insert into t values {}", rows.join(", ")));
    let mut other = session(&bed).await;
    other.query_drop("begin").await.unwrap();
    // Who has changed more rows is not chosen as the victim.
    for _ in 0..4 {
        other
            .query_drop("update t set a = a + 1 where id > 9")
            .await
            .unwrap();
    }
    let options = Options {
        lock_wait: Duration::from_secs(60),
        ..Options::default()
    };
    let (target, login) = login(bed.database.url(), &[]);
    let sink = ClientSink::new(target, login, &options);
    let set = describe(&sink, update("t", "a", "id")).await;
    let units: Vec<Unit> = (0..20)
        .map(|n| unit(text(&set, &["5", &n.to_string()])))
        .collect();
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let run = units.clone();
    let task = tokio::spawn(async move { (executor.execute(&run).await, executor) });
    eventually("the batch waits", || {
        // MySQL counts whole seconds.
        let long = if is_mariadb(&bed) {
            "time_ms > 300"
        } else {
            "time > 0"
        };
        let waiting = "select count(*) from information_schema.processlist where db = database() \
                       and command <> 'Sleep' and id <> connection_id()";
        bed.sql(&format!("{waiting} and {long}")) == "1"
    })
    .await;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_can_be_cancelled() {
    let bed = Bed::new(TABLE).await;
    bed.sql("insert into t values (1, 1)");
    let mut other = session(&bed).await;
    other.query_drop("begin").await.unwrap();
    other.query_drop("update t set a = 2").await.unwrap();
    let set = bed.describe(update("t", "a", "id")).await;
    let mut patient = bed.sink.connect(Purpose::LockWait).await.unwrap();
    let canceller = patient.canceller().unwrap();
    let units = [unit(text(&set, &["5", "1"]))];
    let task = tokio::spawn(async move { patient.execute(&units).await });
    eventually("the write waits", || {
        let waits = "select count(*) from information_schema.processlist where db = database() \
                     and info like 'UPDATE t SET%' and id <> connection_id()";
        bed.sql(waits) == "1"
    })
    .await;
    canceller.cancel().await.unwrap();
    let report = task.await.unwrap();
    let outcome = told(report.verdicts[0].clone());
    assert_eq!(error(&outcome).number, 1317);
    assert!(!report.usable);
}
