//! Bad input: a clear error for whoever sent it, nothing else disturbed.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Db, Gateway, TEST_TIMEOUT, code};

const SCHEMA: &str = "create table readings (id bigint primary key, note text)";
const ROWS: &str = "/v1/tables/readings/rows";

/// After each piece of bad input a good row must still be written, over another connection.
async fn undisturbed(gateway: &Gateway, id: usize) {
    let (status, answer) = gateway
        .insert("readings", &format!("{{\"id\": {id}, \"note\": \"good\"}}"))
        .await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn bad_bodies_are_told_what_is_wrong() {
    for db in [Db::postgres().await, Db::sqlite()] {
        db.run(SCHEMA).await;
        let gateway = Gateway::to(&db.url()).await;
        let nested = |depth: usize| {
            format!(
                "{{\"id\": 1, \"note\": {}1{}}}",
                "[".repeat(depth),
                "]".repeat(depth)
            )
        };
        let cases: [(&str, String, u16, &str); 9] = [
            ("application/json", "not json".into(), 400, "line 1"),
            (
                "application/json",
                "{\"id\": 1,\n \"note\": }".into(),
                400,
                "line 2",
            ),
            ("application/json", "{\"id\": 1".into(), 400, "line 1"),
            ("application/json", "[{\"id\": 1}, 5]".into(), 400, "object"),
            (
                "application/json",
                "{\"id\": 1, \"nope\": 2}".into(),
                422,
                "nope",
            ),
            (
                "application/json",
                "{\"id\": 1, \"id\": 2}".into(),
                400,
                "id",
            ),
            ("application/json", nested(1000), 400, "128"),
            ("text/plain", "{\"id\": 1}".into(), 415, "application/json"),
            (
                "application/x-ndjson",
                "{\"id\": 1000001}\n{bad}\n{\"id\": 1000002}\n".into(),
                207,
                "line 2",
            ),
        ];
        for (n, (kind, body, status, word)) in cases.into_iter().enumerate() {
            let (told, answer) = gateway
                .try_send("POST", ROWS, kind, Some(body.clone()))
                .await
                .unwrap();
            let short: String = body.chars().take(60).collect();
            assert_eq!(told, status, "{short}: {answer}");
            assert!(
                answer.to_string().contains(word),
                "{short}: {answer} should say {word:?}"
            );
            undisturbed(&gateway, 100 + n).await;
        }
        let (told, answer) = gateway.insert("readings", r#"{"id": "word"}"#).await;
        // SQLite takes a word for a number where the table is not STRICT.
        let lax = matches!(db, Db::Sqlite { .. });
        assert!(
            lax || (told == 422 && code(&answer) == "22P02"),
            "{told} {answer}"
        );
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_value_of_ten_megabytes_is_written_or_refused_by_a_named_limit() {
    for db in [Db::postgres().await, Db::sqlite()] {
        db.run(SCHEMA).await;
        let note = "x".repeat(10 << 20);
        let row = format!("{{\"id\": 1, \"note\": \"{note}\"}}");
        let gateway = Gateway::to(&db.url()).await;
        let (status, answer) = gateway.insert("readings", &row).await;
        assert_eq!(status, 413, "{answer}");
        assert!(
            answer.to_string().contains("http.max_row"),
            "the limit is named: {answer}"
        );
        undisturbed(&gateway, 3).await;
        gateway.stop().await;
        let gateway = Gateway::with(&db.url(), "http = { max_row = '16MiB' }").await;
        let (status, answer) = gateway.insert("readings", &row).await;
        assert_eq!(status, 201, "{answer}");
        let length = db
            .number("select length(note) from readings where id = 1")
            .await;
        assert_eq!(length, 10 << 20);
        gateway.stop().await;
    }
}

#[tokio::test]
async fn no_name_is_ever_sql() {
    for db in [Db::postgres().await, Db::sqlite()] {
        db.run(SCHEMA).await;
        db.run(
            "create table \"od\"\"d; table\" (\"col; drop table readings; --\" bigint primary key)",
        )
        .await;
        let gateway = Gateway::to(&db.url()).await;
        let (status, answer) = gateway
            .insert(
                "od%22d%3B%20table",
                r#"{"col; drop table readings; --": 5}"#,
            )
            .await;
        assert_eq!(status, 201, "{answer}");
        let hostile = "readings%22%3B%20drop%20table%20readings%3B%20--";
        let (status, answer) = gateway.insert(hostile, r#"{"id": 1}"#).await;
        assert_eq!((status, code(&answer)), (404, "42P01"), "{answer}");
        let (status, answer) = gateway
            .insert("readings", r#"{"id\" ) values (1); --": 1}"#)
            .await;
        assert_eq!((status, code(&answer)), (422, "42703"), "{answer}");
        let (status, _) = gateway
            .send("GET", "/v1/tables/readings/rows/1'%20or%20'1'='1", None)
            .await;
        assert!(status == 422 || status == 404, "{status}");
        undisturbed(&gateway, 1).await;
        assert_eq!(db.number("select count(*) from readings").await, 1);
        gateway.stop().await;
    }
}

/// Writes raw bytes and reads whatever comes until the server closes.
async fn raw(gateway: &Gateway, bytes: &[u8], finish: bool) -> String {
    let address = gateway.url("").replace("http://", "");
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    if finish {
        socket.shutdown().await.unwrap();
    }
    let mut answer = Vec::new();
    // A reset after the answer is an end like any other.
    drop(
        tokio::time::timeout(TEST_TIMEOUT, socket.read_to_end(&mut answer))
            .await
            .expect("the server ends it"),
    );
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn truncated_slow_and_senseless_requests_end_without_harm() {
    let db = Db::sqlite();
    db.run(SCHEMA).await;
    let gateway = Gateway::with(&db.url(), "http = { body_timeout = '200ms' }").await;
    let head = format!(
        "POST {ROWS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"
    );
    let truncated = raw(&gateway, format!("{head}{{\"id\": 1").as_bytes(), true).await;
    assert!(!truncated.contains("HTTP/1.1 2"), "{truncated}");
    undisturbed(&gateway, 10).await;
    let slow = raw(&gateway, format!("{head}{{\"id\": 1").as_bytes(), false).await;
    assert!(slow.starts_with("HTTP/1.1 408"), "{slow}");
    undisturbed(&gateway, 11).await;
    let senseless = raw(&gateway, b"\x00\x01\x02 what is this\r\n\r\n", false).await;
    assert!(
        senseless.is_empty() || senseless.starts_with("HTTP/1.1 400"),
        "{senseless}"
    );
    undisturbed(&gateway, 12).await;
    assert_eq!(
        db.number("select count(*) from readings").await,
        3,
        "no half row was written"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_disturb_nobody() {
    let db = Db::sqlite();
    db.run(SCHEMA).await;
    let gateway = Gateway::to(&db.url()).await;
    let address = gateway.url("").replace("http://", "");
    let mut idle = Vec::new();
    for _ in 0..400 {
        idle.push(TcpStream::connect(&address).await.unwrap());
    }
    for id in 0..20 {
        undisturbed(&gateway, id).await;
    }
    // They do not hold up the end either.
    tokio::time::timeout(Duration::from_secs(20), gateway.stop())
        .await
        .expect("idle connections are closed");
    drop(idle);
}

#[tokio::test]
async fn unknown_paths_methods_and_parameters_are_told_what_there_is() {
    let db = Db::sqlite();
    db.run(SCHEMA).await;
    let gateway = Gateway::to(&db.url()).await;
    let (status, answer) = gateway.send("GET", "/v2/what", None).await;
    assert_eq!(status, 404);
    assert!(answer.to_string().contains("/v1/batch"), "{answer}");
    assert_eq!(gateway.send("PUT", ROWS, Some("{}".into())).await.0, 405);
    let (status, answer) = gateway
        .send(
            "POST",
            &format!("{ROWS}?on_conflikt=ignore"),
            Some("{}".into()),
        )
        .await;
    assert!(
        status == 400 && answer.to_string().contains("on_conflict"),
        "{status} {answer}"
    );
    let (status, answer) = gateway
        .send(
            "POST",
            &format!("{ROWS}?ack=spool"),
            Some("{\"id\": 1}".into()),
        )
        .await;
    assert!(status == 400 || status == 501, "{status} {answer}");
    let (status, answer) = gateway
        .send("GET", "/v1/tables/readings/rows/1,2", None)
        .await;
    assert!(
        status == 400 && answer.to_string().contains("id"),
        "{status} {answer}"
    );
    assert_eq!(
        gateway
            .send("GET", "/v1/tables/readings/rows/1", None)
            .await
            .0,
        404
    );
    gateway.stop().await;
}
