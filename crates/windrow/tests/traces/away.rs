//! Collectors that do not take what they are sent: writes do not notice.

use std::path::Path;

use tokio::net::TcpListener;
use windrow_testkit::process::Windrow;

use crate::collector::{Collector, Manner, sorted};
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
    collector.was_asked(1).await;
    // It waits for an answer now; writes go on.
    for id in 100..105 {
        let row = format!("{{\"id\": {id}}}");
        assert_eq!(gateway.insert("t", &row, None).await, 201);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_counted() {
    let mut collector = Collector::start(Manner::Refuses(400)).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 1.0)).await;
    assert_eq!(gateway.insert("t", r#"{"id": 1}"#, None).await, 201);
    collector.was_asked(1).await;
    let lost = "windrow_trace_spans_total{outcome=\"lost\"}";
    // The gateway hears of it at some time after the collector has said so.
    let counted = async { while gateway.metric(lost).await == "0" {} };
    let counted = tokio::time::timeout(windrow_testkit::process::TEST_TIMEOUT, counted).await;
    counted.expect("what is lost is counted");
    let delivered = "windrow_trace_spans_total{outcome=\"delivered\"}";
    assert_eq!(gateway.metric(delivered).await, "0");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_busy_gets_them_again() {
    let mut collector = Collector::start(Manner::BusyOnce).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 1.0)).await;
    assert_eq!(gateway.insert("t", r#"{"id": 1}"#, None).await, 201);
    collector.was_asked(2).await;
    gateway.stop().await;
    let (requests, batches) = sorted(collector.spans());
    assert_eq!((requests.len(), batches.len()), (1, 1));
}

/// Its own rest after the first attempt, a second, is shorter than what is asked for here.
async fn comes_back(manner: Manner) {
    let mut collector = Collector::start(manner).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 1.0)).await;
    assert_eq!(gateway.insert("t", r#"{"id": 1}"#, None).await, 201);
    collector.was_asked(2).await;
    gateway.stop().await;
    assert_eq!(collector.early(), 0);
    let (requests, batches) = sorted(collector.spans());
    assert_eq!((requests.len(), batches.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_says_after_how_many_seconds_is_left_alone_for_them() {
    let busy = comes_back(Manner::Later(429, 2));
    tokio::join!(busy, comes_back(Manner::Later(502, 2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_names_a_date_is_left_alone_until_then() {
    let busy = comes_back(Manner::LaterByDate(503, 3));
    tokio::join!(busy, comes_back(Manner::LaterByDate(504, 3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_does_not_wait_for_one_that_wants_to_be_left_alone() {
    let mut collector = Collector::start(Manner::Later(503, 3600)).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 1.0)).await;
    assert_eq!(gateway.insert("t", r#"{"id": 1}"#, None).await, 201);
    collector.was_asked(1).await;
    gateway.stop().await;
    let (requests, batches) = sorted(collector.spans());
    assert_eq!((requests.len(), batches.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_told_once() {
    let mut collector = Collector::start(Manner::Refuses(400)).await;
    let program = Path::new(env!("CARGO_BIN_EXE_windrow"));
    let options = ["--to", "sqlite::memory:", "--create-tables", "--traces"];
    let options = [&options[..], &[collector.endpoint.as_str()]].concat();
    let windrow = Windrow::serve(program, &options).unwrap();
    let client = reqwest::Client::new();
    for id in 1..=3 {
        let body = format!("{{\"id\": {id}}}");
        let insert = client.post(windrow.url("/v1/tables/t/rows")).body(body);
        let insert = insert.header("content-type", "application/json").send();
        assert_eq!(insert.await.unwrap().status(), 201);
        collector.was_asked(id).await;
    }
    windrow.terminate().unwrap();
    let log = tokio::task::spawn_blocking(move || {
        let mut windrow = windrow;
        windrow.wait().unwrap();
        windrow.log()
    });
    let log = log.await.unwrap();
    assert_eq!(log.matches("spans are not delivered").count(), 1, "{log}");
    assert!(log.contains("answers 400 Bad Request"), "{log}");
}
