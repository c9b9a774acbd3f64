//! Clients that are slow, broken or many.

use std::time::Duration;

use windrow_http::HttpConfig;

use crate::support::{client, config, good, post_text, serve, serve_with};

const HEAD: &str =
    "POST /v1/tables/t/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

fn hasty() -> HttpConfig {
    HttpConfig {
        body_timeout: Duration::from_millis(60),
        header_timeout: Duration::from_millis(60),
        ..config()
    }
}

#[tokio::test]
async fn a_body_that_makes_no_progress_is_given_up() {
    let (server, seen) = serve_with(hasty(), good).await;
    let mut raw = server.connect().await;
    raw.send(format!("{HEAD}content-length: 100\r\n\r\n{{\"a\":"))
        .await;
    let told = raw.rest().await;
    assert!(told.starts_with("HTTP/1.1 408"), "{told}");
    assert!(
        told.contains("http.body_timeout") && told.contains("connection: close"),
        "{told}"
    );
    let mut raw = server.connect().await;
    let head = HEAD.replace("application/json", "text/csv");
    raw.send(format!(
        "{head}transfer-encoding: chunked\r\n\r\n6\r\na\n1\n2\n\r\n"
    ))
    .await;
    let told = raw.rest().await;
    assert!(told.starts_with("HTTP/1.1 408"), "{told}");
    assert!(
        told.contains("\"rows\":2"),
        "what came before stays: {told}"
    );
    assert_eq!(seen.writes().len(), 2);
    assert_eq!(server.budget.held(), 0);
}

#[tokio::test]
async fn a_head_that_does_not_end_is_given_up() {
    let (server, _) = serve_with(hasty(), good).await;
    let mut raw = server.connect().await;
    raw.send(HEAD).await;
    let told = raw.rest().await;
    assert!(told.starts_with("HTTP/1.1 408"), "{told}");
}

#[tokio::test]
async fn a_head_of_a_megabyte_is_refused() {
    let (server, _) = serve(good).await;
    let mut raw = server.connect().await;
    let head = format!("{HEAD}x: {}\r\n\r\n", "x".repeat(40_000));
    raw.send(head).await;
    let told = raw.rest().await;
    assert!(told.starts_with("HTTP/1.1 431"), "{told}");
}

#[tokio::test]
async fn a_truncated_body_is_refused() {
    let (server, seen) = serve(good).await;
    let mut raw = server.connect().await;
    raw.send(format!("{HEAD}content-length: 100\r\n\r\n{{\"a\":1}}"))
        .await;
    tokio::io::AsyncWriteExt::shutdown(&mut raw.0)
        .await
        .unwrap();
    let told = raw.rest().await;
    assert!(told.starts_with("HTTP/1.1 400"), "{told}");
    assert!(told.contains("ended before it was complete"), "{told}");
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn nonsense_instead_of_http() {
    let (server, _) = serve(good).await;
    for nonsense in [
        "\0\u{1}\u{2}\r\n\r\n",
        "GET\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ] {
        let mut raw = server.connect().await;
        raw.send(nonsense).await;
        let told = raw.rest().await;
        assert!(told.starts_with("HTTP/1.1 400"), "{nonsense:?}: {told}");
    }
    let mut raw = server.connect().await;
    raw.send(format!("{HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n"))
        .await;
    let told = raw.rest().await;
    assert!(told.starts_with("HTTP/1.1 400"), "{told}");
    assert!(told.contains("chunks of the body"), "{told}");
}

/// Nobody would unpack it: its rows would be read from the packed bytes.
#[tokio::test]
async fn a_body_in_a_transfer_coding_that_is_not_known() {
    let (server, seen) = serve(good).await;
    for coding in ["gzip, chunked", "chunked, chunked", "identity, chunked"] {
        let mut raw = server.connect().await;
        let head = format!("{HEAD}transfer-encoding: {coding}\r\n\r\n");
        raw.send(format!("{head}7\r\n{{\"a\":1}}\r\n0\r\n\r\n"))
            .await;
        let reply = raw.reply().await;
        assert_eq!(reply.status, 501, "{coding}");
        raw.send(format!("{HEAD}content-length: 7\r\n\r\n{{\"a\":1}}"))
            .await;
        assert_eq!(raw.reply().await.status, 201, "{coding}");
    }
    assert_eq!(seen.writes().len(), 3);
}

#[tokio::test]
async fn a_client_that_asks_first_is_refused_before_it_sends() {
    let (server, _) = serve(good).await;
    let mut raw = server.connect().await;
    let batch = "POST /v1/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    raw.send(format!(
        "{batch}expect: 100-continue\r\ncontent-length: 100000000\r\n\r\n"
    ))
    .await;
    let told = raw.rest().await;
    assert!(told.starts_with("HTTP/1.1 413"), "{told}");
    let mut raw = server.connect().await;
    raw.send(format!(
        "{HEAD}expect: 100-continue\r\ncontent-length: 7\r\n\r\n"
    ))
    .await;
    assert_eq!(raw.reply().await.status, 100);
    raw.send("{\"a\":1}").await;
    assert_eq!(raw.reply().await.status, 201);
}

/// A refused body is read to its end, so that the client sees the answer and can go on.
#[tokio::test]
async fn a_refused_body_does_not_break_the_connection() {
    let (server, _) = serve(good).await;
    let mut raw = server.connect().await;
    let body = "x".repeat(9_000_000);
    raw.send(format!(
        "{HEAD}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
    .await;
    assert_eq!(raw.reply().await.status, 413);
    raw.send(format!("{HEAD}content-length: 7\r\n\r\n{{\"a\":1}}"))
        .await;
    assert_eq!(raw.reply().await.status, 201);
}

#[tokio::test]
async fn thousands_of_idle_connections_disturb_nobody() {
    let (server, _) = serve(good).await;
    let mut idle = Vec::new();
    for n in 0..2000 {
        let mut raw = server.connect().await;
        if n % 2 == 0 {
            raw.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                .await;
            assert_eq!(raw.reply().await.status, 200);
        }
        idle.push(raw);
    }
    let (status, _) = post_text(server.rows(), "application/json", "{\"a\":1}").await;
    assert_eq!(status, 201);
    assert!(
        server.metrics().contains("windrow_http_connections 200"),
        "{}",
        server.metrics()
    );
    for raw in &mut idle {
        raw.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await;
        assert_eq!(raw.reply().await.status, 200);
    }
}

#[tokio::test]
async fn bad_clients_leave_others_alone() {
    let (server, seen) = serve(good).await;
    let bad = async {
        for n in 0..50 {
            let mut raw = server.connect().await;
            match n % 3 {
                0 => raw.send("garbage\r\n\r\n").await,
                1 => {
                    raw.send(format!("{HEAD}content-length: 100\r\n\r\n{{"))
                        .await;
                }
                _ => {
                    raw.send(format!("{HEAD}content-length: 9\r\n\r\n{{\"a\":1}}"))
                        .await;
                }
            }
        }
    };
    let client = client();
    let fine = async {
        for n in 0..50 {
            let response = client
                .post(server.rows())
                .body(format!("{{\"n\":{n}}}"))
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), 201);
        }
    };
    tokio::join!(bad, fine);
    assert_eq!(seen.writes().len(), 50);
}
