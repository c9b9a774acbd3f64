//! Single messages, and the rows or dead letters that they become.

use windrow_testkit::left_out;
use windrow_testkit::mariadb::{self, MariaDb};
use windrow_testkit::mosquitto::Mosquitto;

use crate::support::{Gateway, broker, publish};

const READINGS: &str =
    "[mqtt.topics.readings]\ntopic = 'devices/{device}/readings'\ntable = 'readings'\n";

async fn send(broker: &Mosquitto, messages: &[(&str, &str)]) {
    let messages = messages
        .iter()
        .map(|(topic, text)| (*topic, (*text).to_owned()));
    publish(broker, messages).await;
}

/// Objects and arrays become rows, with a value of the topic. What is no row becomes a dead letter,
/// and so does what the database refuses; both are acknowledged.
#[tokio::test]
async fn messages_become_rows_or_dead_letters() {
    let Some(broker) = broker() else { return };
    let gateway = Gateway::start(&broker, None, READINGS);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    send(
        &broker,
        &[
            ("devices/d1/readings", r#"{"id": 1, "celsius": 21.5}"#),
            (
                "devices/d2/readings",
                "[{\"id\": 2}, {\"id\": 3, \"device\": \"d9\"}]",
            ),
            ("devices/d2/readings", "21.5"),
            (
                "devices/d3/readings",
                r#"{"id": 4, "celsius": 1, "celsius": 2}"#,
            ),
            ("other/d1", r#"{"id": 5}"#),
            // The same message again.
            ("devices/d1/readings", r#"{"id": 1, "celsius": 0.0}"#),
            ("devices/d2/readings", r#"{"id": null}"#),
        ],
    )
    .await;
    gateway
        .until_metric("windrow_mqtt_messages_total{outcome=\"dead_letter\"} 2")
        .await;
    let rows = gateway.until_rows("readings", "id", 3).await;
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (row["id"].clone(), row["device"].clone()))
        .collect();
    let wanted = [(1, "d1"), (2, "d2"), (3, "d2")].map(|(id, device)| (id.into(), device.into()));
    assert!(wanted.iter().all(|row| shown.contains(row)), "{shown:?}");
    assert_eq!(
        rows.iter().find(|row| row["id"] == 1).unwrap()["celsius"],
        21.5
    );
    let letters = gateway.letters();
    let sources: Vec<_> = letters.iter().map(|(source, _)| &**source).collect();
    assert_eq!(
        sources,
        ["mqtt devices/d2/readings", "mqtt devices/d3/readings"]
    );
    assert_eq!(letters[0].1, r#"{"windrow_message":"21.5"}"#);
    gateway.until_metric("windrow_mqtt_unacknowledged 0").await;
}

/// Rows that the spool has are acknowledged and reach the table.
#[tokio::test]
async fn messages_go_by_the_spool_where_that_is_asked_for() {
    let Some(broker) = broker() else { return };
    let folder = tempfile::tempdir().unwrap();
    let spool = format!(
        "ack = 'spool'\n[spool]\ndirectory = '{}'\n",
        folder.path().join("s").display()
    );
    let gateway = Gateway::start(&broker, None, &format!("{READINGS}{spool}"));
    gateway.until_metric("windrow_mqtt_connected 1").await;
    send(&broker, &[("devices/d1/readings", r#"{"id": 1}"#)]).await;
    gateway
        .until_metric("windrow_mqtt_rows_total{outcome=\"written\"} 1")
        .await;
    gateway.until_rows("readings", "id", 1).await;
}

/// Rows for tables without a key, of every database that has no way to ignore a key there.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_needs_no_key() {
    let Some(broker) = broker() else { return };
    let database = windrow_testkit::postgres::shared().unwrap();
    let gateway = Gateway::start(&broker, Some(database.url()), READINGS);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    for _ in 0..2 {
        send(&broker, &[("devices/d1/readings", r#"{"celsius": 21.5}"#)]).await;
    }
    let written = "windrow_mqtt_rows_total{outcome=\"written\"} 2";
    gateway.until_metric(written).await;
    assert_eq!(gateway.rows("readings", "celsius").await.len(), 2);
}

/// Of an array, only what is no row becomes a dead letter.
#[tokio::test]
async fn one_bad_element_spoils_no_other() {
    let Some(broker) = broker() else { return };
    let gateway = Gateway::start(&broker, None, READINGS);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    let array = r#"[{"id": 1}, 21.5, {"id": 2}]"#;
    send(&broker, &[("devices/d1/readings", array)]).await;
    gateway
        .until_metric("windrow_mqtt_messages_total{outcome=\"dead_letter\"} 1")
        .await;
    assert_eq!(gateway.rows("readings", "id").await.len(), 2);
    let letters: Vec<_> = gateway.letters().into_iter().map(|(_, row)| row).collect();
    assert_eq!(letters, [r#"{"windrow_message":"21.5"}"#]);
}

/// A table of dead letters that another program has dropped is made again as it was, and not from
/// the columns of a letter.
#[tokio::test]
async fn a_dropped_table_of_dead_letters_is_made_again() {
    let Some(broker) = broker() else { return };
    let gateway = Gateway::start(&broker, None, READINGS);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    for (count, text) in [(1, "21.5"), (2, "22.5")] {
        send(&broker, &[("devices/d1/readings", text)]).await;
        let line = format!("windrow_mqtt_messages_total{{outcome=\"dead_letter\"}} {count}");
        gateway.until_metric(&line).await;
        let row = format!("{{\"windrow_message\":\"{text}\"}}");
        assert_eq!(
            gateway.letters(),
            [("mqtt devices/d1/readings".to_owned(), row)]
        );
        gateway.drop_letters();
    }
}

/// Messages and rows that are longer than the database takes are kept in part, and hold up no
/// other message of their topic.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_dead_letter_holds_nothing_up() {
    let Some(broker) = broker() else { return };
    if !mariadb::is_installed() {
        left_out::note("MariaDB is not installed: long dead letters");
        return;
    }
    let server = MariaDb::builder().set("max_allowed_packet", "131072");
    let server = server.start().unwrap();
    let url = server.create_database().unwrap();
    let gateway = Gateway::start(&broker, Some(&url), READINGS);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    let long = "x".repeat(500_000);
    let (message, row) = (
        format!("\"{long}\""),
        format!("{{\"id\": 2, \"note\": \"{long}\"}}"),
    );
    let topic = "devices/d1/readings";
    let messages = [(topic, &*message), (topic, &*row), (topic, r#"{"id": 1}"#)];
    send(&broker, &messages).await;
    gateway
        .until_metric("windrow_mqtt_messages_total{outcome=\"dead_letter\"} 2")
        .await;
    gateway.until_rows("readings", "id", 1).await;
    gateway.until_metric("windrow_mqtt_unacknowledged 0").await;
    let kept =
        "select group_concat(length(`row`) > 60000, right(message, 6), '') from windrow_rejected";
    let kept = mariadb::sql(&url, kept).unwrap();
    assert_eq!(kept.trim(), "1is cut,1is cut");
}

/// A topic that is no longer configured is kept once as a dead letter, and then unsubscribed from.
#[tokio::test]
async fn a_removed_topic_is_unsubscribed_from() {
    let Some(broker) = broker() else { return };
    let old = "[mqtt.topics.old]\ntopic = 'old/{device}/#'\ntable = 'old'\n";
    let mut gateway = Gateway::start(&broker, None, &format!("{READINGS}{old}"));
    gateway.until_metric("windrow_mqtt_connected 1").await;
    send(&broker, &[("old/d1/x", r#"{"id": 1}"#)]).await;
    gateway.until_rows("old", "id", 1).await;
    gateway.start_with(&broker, READINGS);
    gateway.until_metric("windrow_mqtt_connected 1").await;
    send(&broker, &[("old/d1/x", r#"{"id": 2}"#)]).await;
    gateway
        .until_metric("windrow_mqtt_messages_total{outcome=\"dead_letter\"} 1")
        .await;
    // A message behind one of the old topic shows that the broker has passed over the latter.
    for id in 3.. {
        let before = gateway.letters().len();
        send(&broker, &[("old/d1/x", r#"{"id": 2}"#)]).await;
        let row = format!(r#"{{"id": {id}}}"#);
        send(&broker, &[("devices/d1/readings", &row)]).await;
        gateway.until_rows("readings", "id", id - 2).await;
        gateway.until_metric("windrow_mqtt_unacknowledged 0").await;
        if gateway.letters().len() == before {
            break;
        }
    }
    assert!(
        gateway
            .letters()
            .iter()
            .all(|(of, _)| of == "mqtt old/d1/x")
    );
}
