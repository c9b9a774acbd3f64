//! Batches that are longer than a packet, and answers that are longer than a socket's buffers.

use windrow_core::Rung;
use windrow_testkit::mariadb::{MariaDb, sql};

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_may_be_longer_than_a_packet() {
    let mut bed = Bed::new("create table t (id int primary key, a mediumtext)").await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    let long = format!("'{}'", "x".repeat(300_000));
    let call = |n: i32| unit(text(&put, &[&n.to_string(), &long]));
    let (_, report) = bed.succeed(&(0..20).map(call).collect::<Vec<_>>()).await;
    assert!(rung(&report, Rung::Fused) > 16 && report.tally.round_trips < 5);
    assert_eq!(
        bed.sql("select count(*), sum(length(a)) from t"),
        "20|6000000"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_limit_of_packets_is_kept() {
    let server = MariaDb::builder()
        .set("max-allowed-packet", "16384")
        .start()
        .unwrap();
    let url = server.create_database().unwrap();
    sql(&url, "create table t (id int primary key, a text)").unwrap();
    let (target, login) = login(&url, &[]);
    let sink = windrow_mysql::ClientSink::new(target, login, &Default::default());
    let mut executor = windrow_core::Sink::connect(&*sink, windrow_core::Purpose::Batches)
        .await
        .unwrap();
    let put = describe(&sink, insert("t", &["id", "a"])).await;
    let long = "x".repeat(200);
    let call = |n: i32| match n % 2 {
        0 => unit(text(&put, &[&n.to_string(), &format!("'{long}'")])),
        _ => unit(prepared(&put, &[&n.to_string(), &long])),
    };
    let units: Vec<_> = (0..500).map(call).collect();
    let report = executor.execute(&units).await;
    for verdict in &report.verdicts {
        assert_eq!(told(verdict.clone()).unwrap()[0].rows, 1);
    }
    assert!(rung(&report, Rung::Fused) > 400);
    assert_eq!(sql(&url, "select count(*) from t").unwrap(), "500");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_answers_do_not_stop_many_commands() {
    let mut bed = Bed::new("create table t (id int primary key, a int)").await;
    let set = bed.describe(update("t", "a", "id")).await;
    let pad = format!("1 + {}", "0".repeat(200));
    let call = |n: i32| unit(text(&set, &[&pad, &n.to_string()]));
    let units: Vec<_> = (0..20_000).map(call).collect();
    let (done, _) = bed.succeed(&units).await;
    assert!(done.iter().all(|done| done.rows == 0));
}
