//! Connections that end.

use windrow_core::{Field, LoadFault, Rows};
use windrow_database::Driver;
use windrow_postgres::Postgres;

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

const WAITS: &str =
    "from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";

#[tokio::test]
async fn a_portion_under_way_that_loses_its_connection_is_written_nowhere() {
    let bed = Bed::new("create table t (id int primary key, v text)").await;
    for rows in [10, 200_000] {
        let other = session(bed.database.url()).await;
        other
            .batch_execute("begin; lock table t in share mode")
            .await
            .unwrap();
        let mut portion = Rows::new(2);
        for id in 0..rows {
            let id = id.to_string();
            assert!(portion.push(
                1,
                [Field::Plain(&id), Field::Plain("some text that takes room")]
            ));
        }
        let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
        let task = tokio::spawn(async move {
            let outcome = loader.load(&portion, Some(&mark("l", 0, 9))).await;
            let after = loader.load(&portion, None).await;
            (outcome, after)
        });
        eventually("the portion waits", || {
            bed.sql(&format!("select count(*) {WAITS}")) == "1"
        })
        .await;
        bed.sql(&format!("select pg_terminate_backend(pid) {WAITS}"));
        let (outcome, after) = task.await.unwrap();
        again(outcome);
        again(after);
        other.batch_execute("rollback").await.unwrap();
        assert_eq!(bed.sql("select count(*) from t"), "0");
    }
}

#[tokio::test]
async fn an_idle_connection_that_was_ended_is_told_before_anything_is_sent() {
    let bed = Bed::new("create table t (id int primary key)").await;
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    assert_eq!(loader.load(&plain(&[["1"]]), None).await, Ok(written(1)));
    bed.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'windrow' and datname = current_database()");
    again(loader.load(&plain(&[["2"]]), None).await);
    assert_eq!(bed.sql("select count(*) from t"), "1");
}

#[tokio::test]
async fn a_portion_whose_commit_was_sent_and_never_answered_is_unknown() {
    let server = windrow_testkit::postgres::Postgres::start().unwrap();
    server.exec("create table t (id int primary key)").unwrap();
    let sink = Driver::open(
        &Postgres,
        &server.url(),
        &windrow_database::Options::default(),
    )
    .await
    .unwrap();
    let bulk = sink.bulk().unwrap();
    let mut loader = bulk.loader(&plan("t", &["id"])).await.unwrap();
    assert_eq!(loader.load(&plain(&[["1"]]), None).await, Ok(written(1)));
    server.pause().unwrap();
    let task = tokio::spawn(async move { loader.load(&plain(&[["2"]]), None).await });
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(!task.is_finished());
    server.kill9().unwrap();
    let outcome = task.await.unwrap();
    assert!(
        matches!(&outcome, Err(LoadFault::Unknown(fault)) if fault.code == "08007"),
        "{outcome:?}"
    );
}
