//! Bodies packed by gzip.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use windrow_http::HttpConfig;

use crate::support::{MIB, client, config, good, request, send, serve, start};

fn packed(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

async fn post(url: String, kind: &str, body: Vec<u8>) -> (u16, serde_json::Value) {
    let request = client().post(url).header("content-type", kind);
    send(request.header("content-encoding", "gzip").body(body)).await
}

#[tokio::test]
async fn every_kind_of_body_may_be_packed() {
    let (server, seen) = serve(good).await;
    let lines: String = (0..20_000).map(|n| format!("{{\"a\":{n}}}\n")).collect();
    let kind = "application/x-ndjson";
    let (status, told) = post(server.rows(), kind, packed(&lines)).await;
    assert_eq!((status, &told["rows"]), (200, &json!(20_000)));
    let answer = post(server.rows(), "application/json", packed("{\"a\":1}")).await;
    assert_eq!(answer, (201, json!({"rows": 1})));
    let atomic = server.rows() + "?atomic=true";
    let (status, told) = post(atomic, "text/csv", packed("a\n1\n2\n")).await;
    assert_eq!((status, &told["rows"]), (200, &json!(2)));
    let batch = json!({"operations": [{"op": "delete", "table": "t", "key": 1}]});
    let body = packed(batch.to_string());
    let (status, told) = post(server.url("/v1/batch"), "application/json", body).await;
    assert_eq!((status, &told["errors"]), (200, &json!(0)));
    assert_eq!(seen.writes().len(), 20_004);
}

#[tokio::test]
async fn limits_count_what_is_unpacked() {
    let limits = HttpConfig {
        max_row: MIB,
        max_body: 2 * MIB,
        ..config()
    };
    let (server, _arrivals) = start(limits, 64 * MIB).await;
    // A quarter of a gigabyte in a body of less than a megabyte.
    let bomb = |byte| packed(vec![byte; 1 << 28]);
    let (blanks, lines) = (bomb(b' '), bomb(b'\n'));
    assert!(blanks.len() < MIB && lines.len() < MIB);
    let atomic = server.rows() + "?atomic=true";
    for (url, kind, body, limit) in [
        (
            server.rows(),
            "application/x-ndjson",
            &blanks,
            "http.max_row",
        ),
        (
            server.rows(),
            "application/x-ndjson",
            &lines,
            "http.max_row",
        ),
        (server.rows(), "text/csv", &lines, "http.max_row"),
        (server.rows(), "application/json", &blanks, "http.max_row"),
        (atomic, "application/x-ndjson", &lines, "http.max_row"),
        (
            server.url("/v1/batch"),
            "application/json",
            &blanks,
            "http.max_body",
        ),
    ] {
        let (status, told) = post(url, kind, body.clone()).await;
        assert_eq!(status, 413, "{told}");
        let message = told["error"]["message"].as_str().unwrap();
        assert!(message.contains(limit), "{message}");
    }
}

/// The runtime has one thread, as the gateway has by default. A task that only wakes itself runs 61
/// times before any socket is polled, so that this body would be read to its end first.
#[tokio::test]
async fn others_are_served_while_a_packed_body_without_rows_is_read() {
    let (server, _seen) = serve(good).await;
    let (mut blank, mut other) = (server.connect().await, server.connect().await);
    other.send(request("GET", "/healthz", "")).await;
    assert_eq!(other.reply().await.status, 200);
    let body = packed(vec![b'\n'; 6 * MIB]);
    let head = format!(
        "POST /v1/tables/t/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    blank.send([head.as_bytes(), &body].concat()).await;
    // The server has begun to read it.
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    other.send(request("GET", "/healthz", "")).await;
    let is_blank_first = tokio::select! {
        biased;
        _ = blank.0.readable() => true,
        _ = other.0.readable() => false,
    };
    assert!(!is_blank_first);
    assert_eq!(other.reply().await.status, 200);
    assert_eq!(blank.reply().await.status, 200);
}

#[tokio::test]
async fn what_is_damaged_is_refused() {
    let (server, seen) = serve(good).await;
    let whole = packed("{\"a\":1}");
    for (body, word) in [
        (whole[..whole.len() - 2].to_vec(), "before its end mark"),
        (b"{\"a\":1,\"b\":\"more text\"}".to_vec(), "no whole gzip"),
    ] {
        let (status, told) = post(server.rows(), "application/json", body).await;
        assert_eq!(status, 400, "{told}");
        let message = told["error"]["message"].as_str().unwrap();
        assert!(message.contains(word), "{message}");
    }
    assert!(seen.writes().is_empty());
}
