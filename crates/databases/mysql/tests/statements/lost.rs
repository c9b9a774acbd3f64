//! Connections that end, before and while a batch commits.

use std::sync::atomic::Ordering;

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Sink, Unit, Verdict};
use windrow_mysql::ClientSink;
use windrow_testkit::mariadb::{MariaDb, sql};

use crate::relay::Relay;
use crate::support::*;

/// The numbers of the lane's connections.
const OWN: &str = "select max(id) from information_schema.processlist where db = database() and id <> connection_id()";

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_that_was_ended_wrote_nothing() {
    let mut bed = Bed::new("create table t (id int primary key, a int)").await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    let call = |n: i32| unit(text(&put, &[&n.to_string(), "1"]));
    bed.sink.rest();
    bed.succeed(&[call(1), call(2)]).await;
    let connections = || bed.sql(&OWN.replace("max(id)", "count(*)"));
    eventually("one connection is left", || connections() == "1").await;
    bed.sql(&format!("kill {}", bed.sql(OWN)));
    // KILL does not wait for the end. A statement that is sent before it may have been written.
    eventually("it has ended", || connections() == "0").await;
    let report = bed.run(&[call(3)]).await;
    assert!(!report.usable);
    assert!(
        matches!(&report.verdicts[0], Verdict::RolledBack(f) if f.class == FaultClass::Unavailable),
        "{report:?}"
    );
    assert_eq!(bed.sql("select count(*) from t"), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_and_never_answered_is_unknown_only_if_it_may_be_committed() {
    let server = MariaDb::start().unwrap();
    let url = server.create_database().unwrap();
    sql(&url, "create table t (id int primary key, a int)").unwrap();
    let (mut target, login) = login(&url, &[]);
    let relay = Relay::start(target.port, COMMITS, true).await;
    target.port = relay.port;
    let sink = ClientSink::new(target, login, &Default::default());
    for count in [1, 8] {
        let put = describe(&sink, insert("t", &["id", "a"])).await;
        let call = |n: i32| unit(text(&put, &[&n.to_string(), "1"]));
        let mut executor = sink.connect(Purpose::Batches).await.unwrap();
        let units: Vec<Unit> = (0..count).map(|n| call(100 * count + n)).collect();
        for verdict in executor.execute(&units).await.verdicts {
            told(verdict).unwrap();
        }
        let units: Vec<Unit> = (0..count).map(|n| call(100 * count + 50 + n)).collect();
        server.pause().unwrap();
        let before = relay.passed.load(Ordering::SeqCst);
        relay.has_word.store(false, Ordering::SeqCst);
        let task = tokio::spawn(async move { executor.execute(&units).await });
        eventually("the statements are sent", || {
            relay.passed.load(Ordering::SeqCst) > before
        })
        .await;
        assert!(!task.is_finished());
        server.kill9().unwrap();
        let report = task.await.unwrap();
        assert!(!report.usable);
        // A slow server seems to be far away: its batches commit with their statements.
        let is_unknown = count == 1 || relay.has_word.load(Ordering::SeqCst);
        for verdict in report.verdicts {
            match verdict {
                Verdict::Final(Err(failed)) if is_unknown => {
                    assert_eq!(&*failed.fault.code, "08007");
                }
                Verdict::RolledBack(fault) if !is_unknown => {
                    assert_eq!(fault.class, FaultClass::Unavailable);
                }
                other => panic!("{other:?}"),
            }
        }
        server.restart().unwrap();
        sink.rest();
    }
}

/// The statements that commit: near the server, and far from it, as a slow server seems to be.
const COMMITS: &[&[u8]] = &[b"COMMIT", b"SET autocommit = (@"];

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_unknown() {
    for forwards in [true, false] {
        let bed = Bed::new("create table t (id int primary key, a int)").await;
        let (mut target, login) = login(bed.database.url(), &[]);
        let relay = Relay::start(target.port, COMMITS, forwards).await;
        target.port = relay.port;
        let sink = ClientSink::new(target, login, &Default::default());
        let put = describe(&sink, insert("t", &["id", "a"])).await;
        let call = |n: i32| unit(text(&put, &[&n.to_string(), "1"]));
        let mut executor = sink.connect(Purpose::Batches).await.unwrap();
        relay.breaks.store(true, Ordering::SeqCst);
        let report = executor
            .execute(&(0..4).map(call).collect::<Vec<_>>())
            .await;
        assert!(!report.usable);
        for verdict in report.verdicts {
            assert_eq!(&*fault(&told(verdict)).code, "08007");
        }
        let stored = if forwards { "4" } else { "0" };
        eventually("the server has ended the transaction", || {
            bed.sql("select count(*) from t") == stored
        })
        .await;
    }
}
