//! Collectors that do not take what they are sent: writes do not notice.

use std::time::Duration;

use tokio::net::TcpListener;

use crate::collector::{Collector, Manner};
use crate::gateway::{Gateway, traces};

async fn writes(gateway: &Gateway) {
    for id in 0..20 {
        let row = format!("{{\"id\": {id}}}");
        assert_eq!(gateway.insert("t", &row, None).await, 201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_away_hurts_nobody() {
    // Nobody listens at a port that was just given back.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let gateway = Gateway::embedded(&traces(&endpoint, 1.0)).await;
    writes(&gateway).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_does_not_wait_for_one_that_is_silent() {
    let mut collector = Collector::start(Manner::Silent).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 1.0)).await;
    writes(&gateway).await;
    collector
        .requests
        .wait_for(|requests| *requests > 0)
        .await
        .unwrap();
    // It waits for an answer now; writes go on.
    for id in 100..105 {
        let row = format!("{{\"id\": {id}}}");
        assert_eq!(gateway.insert("t", &row, None).await, 201);
    }
    let begun = std::time::Instant::now();
    gateway.stop().await;
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_counted() {
    let mut collector = Collector::start(Manner::Refuses(400)).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 1.0)).await;
    assert_eq!(gateway.insert("t", r#"{"id": 1}"#, None).await, 201);
    collector
        .requests
        .wait_for(|requests| *requests > 0)
        .await
        .unwrap();
    let lost = "windrow_trace_spans_total{outcome=\"lost\"}";
    // The gateway hears of it at some time after the collector has said so.
    let counted = async { while gateway.metric(lost).await == "0" {} };
    let counted = tokio::time::timeout(windrow_testkit::process::PATIENCE, counted).await;
    counted.expect("what is lost is counted");
    let delivered = "windrow_trace_spans_total{outcome=\"delivered\"}";
    assert_eq!(gateway.metric(delivered).await, "0");
    gateway.stop().await;
}
