//! Gateways, brokers and databases that go away amid messages. Whatever the broker has taken is in
//! the table at the end, once.

use std::time::Instant;

use windrow_testkit::mosquitto::Mosquitto;
use windrow_testkit::postgres::Postgres;
use windrow_testkit::process::TEST_TIMEOUT;

use crate::support::{Gateway, broker, publish, until};

const ROWS: usize = 600;

const READINGS: &str = "[mqtt.topics.readings]\ntopic = 'd/{device}'\ntable = 'readings'\n";

async fn send(broker: &Mosquitto, ids: std::ops::Range<usize>) {
    let messages = ids.map(|id| ("d/1", format!("{{\"id\": {id}}}")));
    publish(broker, messages).await;
}

async fn all_rows_are_there(gateway: &Gateway) {
    let rows = gateway.until_rows("readings", "id", ROWS).await;
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_u64().unwrap()).collect();
    let wanted: Vec<_> = (0..ROWS as u64).collect();
    assert_eq!(ids, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_gateway_gets_the_rest_again() {
    let Some(broker) = broker() else { return };
    let mut gateway = Gateway::start(&broker, None, READINGS);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    let sending = send(&broker, 0..ROWS);
    let killing = async {
        gateway.until_rows("readings", "id", 20).await;
        gateway.program.kill9().unwrap();
        gateway.start_again();
    };
    tokio::join!(sending, killing);
    all_rows_are_there(&gateway).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_comes_back_is_found_again() {
    let Some(mut broker) = broker() else { return };
    let gateway = Gateway::start(&broker, None, READINGS);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    send(&broker, 0..ROWS / 2).await;
    broker.stop().unwrap();
    gateway.until_metric("windrow_mqtt_connected 0").await;
    broker.start_again().unwrap();
    send(&broker, ROWS / 2..ROWS).await;
    all_rows_are_there(&gateway).await;
}

/// While the database is away, messages wait at the broker, and the end of the gateway does not
/// wait for the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_keeps_messages_at_the_broker() {
    let Some(broker) = broker() else { return };
    let server = tokio::task::spawn_blocking(|| Postgres::start().unwrap())
        .await
        .unwrap();
    server
        .exec("CREATE TABLE readings (id bigint PRIMARY KEY, device text)")
        .unwrap();
    let mut gateway = Gateway::start(&broker, Some(&server.url()), READINGS);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    send(&broker, 0..10).await;
    gateway.until_rows("readings", "id", 10).await;
    server.kill9().unwrap();
    send(&broker, 10..ROWS).await;
    gateway
        .until_metric("windrow_database_away{lane=\"default\"} 1")
        .await;
    let begun = Instant::now();
    gateway.program.terminate().unwrap();
    gateway.program.wait().unwrap();
    assert!(begun.elapsed() < TEST_TIMEOUT);
    gateway.start_again();
    server.restart().unwrap();
    all_rows_are_there(&gateway).await;
}

/// `check-config --connect` tries the broker.
#[tokio::test(flavor = "multi_thread")]
async fn the_broker_is_tried_before_the_start() {
    let Some(mut broker) = broker() else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("windrow.toml");
    let text = format!("[mqtt]\nurl = 'mqtt://{}'\n{READINGS}", broker.address());
    std::fs::write(&config, text).unwrap();
    let check = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windrow"));
        windrow_testkit::process::without_settings(&mut command);
        command.current_dir(folder.path());
        command.args(["check-config", "--connect"]).arg(&config);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), said)
    };
    let (is_good, said) = check();
    assert!(is_good && said.contains("MQTT 5"), "{said}");
    broker.stop().unwrap();
    let (is_good, said) = check();
    assert!(!is_good && said.contains("mqtt"), "{said}");
}

/// A gateway ends in time also while messages wait for memory that only the database gives back.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_does_not_wait_for_memory() {
    let Some(broker) = broker() else { return };
    let server = tokio::task::spawn_blocking(|| Postgres::start().unwrap())
        .await
        .unwrap();
    server
        .exec("CREATE TABLE readings (id bigint PRIMARY KEY, device text, note text)")
        .unwrap();
    let more = format!("{READINGS}\n[limits]\nmemory = '16MiB'\nstop_wait = '600s'\n");
    let mut gateway = Gateway::start(&broker, Some(&server.url()), &more);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    server.kill9().unwrap();
    let note = "x".repeat(900_000);
    let large = |id| ("d/1", format!("{{\"id\": {id}, \"note\": \"{note}\"}}"));
    publish(&broker, (0..30).map(large)).await;
    gateway
        .until_metric("windrow_database_away{lane=\"default\"} 1")
        .await;
    let is_used_up = async || gateway.metric("windrow_memory_held_bytes").await > 10e6;
    until("memory is used up", is_used_up).await;
    let begun = Instant::now();
    gateway.program.terminate().unwrap();
    gateway.program.wait().unwrap();
    assert!(begun.elapsed() < TEST_TIMEOUT);
}
