//! How connections begin, go on and end.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use windrow_http::HttpConfig;

use crate::support::{MIB, answer, config, eventually, good, post, serve, serve_with, start};

const ROWS: &str = "/v1/tables/t/rows";

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (server, seen) = serve(good).await;
    let mut raw = server.connect().await;
    let requests = [
        post(ROWS, "application/json", "{\"a\":1}"),
        "GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        post(ROWS, "application/json", "{\"a\":2}"),
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
    ];
    raw.send(requests.concat()).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(raw.reply().await.status);
    }
    assert_eq!(statuses, [201, 404, 201, 200]);
    assert_eq!(seen.writes().len(), 2);
}

#[tokio::test]
async fn a_request_in_single_bytes() {
    let (server, seen) = serve(good).await;
    let mut raw = server.connect().await;
    raw.0.set_nodelay(true).unwrap();
    for byte in post(ROWS, "application/json", "{\"a\":\"é\"}").as_bytes() {
        raw.send([*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(raw.reply().await.status, 201);
    assert_eq!(seen.writes().len(), 1);
}

/// A budget of this size allows 256 heads that are not there as a whole.
#[tokio::test]
async fn unfinished_heads_close_the_oldest_of_them_and_keep_nobody_out() {
    let (server, _seen) = serve(good).await;
    let (half, mut halves) = ("GET /healthz HTTP/1.1\r\nhost: local", Vec::new());
    for number in 1..=300 {
        let mut raw = server.connect().await;
        raw.send(half).await;
        halves.push(raw);
        let received = format!("received_bytes_total {}\n", number * half.len());
        eventually("it is read", || server.metrics().contains(&received)).await;
    }
    let mut good = server.connect().await;
    good.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert_eq!(good.reply().await.status, 200);
    for oldest in &mut halves[..44] {
        let told = oldest.rest().await;
        assert!(told.starts_with("HTTP/1.1 408"), "{told}");
    }
    for newer in &mut halves[44..] {
        newer.send("host\r\n\r\n").await;
        assert_eq!(newer.reply().await.status, 200);
    }
}

#[tokio::test]
async fn a_client_may_close_its_sending_side() {
    let (server, mut arrivals) = start(config(), MIB).await;
    let mut raw = server.connect().await;
    raw.send(post(ROWS, "application/json", "{\"a\":1}")).await;
    raw.0.shutdown().await.unwrap();
    let submission = arrivals.recv().await.unwrap();
    answer(submission, &mut good);
    let told = raw.rest().await;
    assert!(told.starts_with("HTTP/1.1 201"), "{told}");
    assert!(told.ends_with("{\"rows\":1}"), "{told}");
}

/// An answer larger than any buffer reaches a client that has closed its sending side and reads
/// slowly.
#[tokio::test]
async fn a_long_answer_is_not_cut_off() {
    let (server, mut arrivals) = start(config(), 64 * MIB).await;
    tokio::spawn(async move {
        let mut count = 0;
        let mut rule = |_: &windrow_core::Write| {
            count += 1;
            Ok(windrow_core::WriteDone::rows(count % 2))
        };
        while let Some(submission) = arrivals.recv().await {
            answer(submission, &mut rule);
        }
    });
    let (mut reader, mut writer) = server.connect().await.0.into_split();
    let body = "{\"a\":1}\n".repeat(1_000_000);
    writer
        .write_all(post(ROWS, "application/x-ndjson", &body).as_bytes())
        .await
        .unwrap();
    drop(writer);
    // The end of what it sends is known before it reads anything of the answer.
    eventually("the answer has begun", || {
        server
            .metrics()
            .contains("method=\"POST\",status=\"2xx\"} 1")
    })
    .await;
    let mut told = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut told)
        .await
        .unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(told.len() > 10_000_000, "{}", told.len());
    assert!(
        told.ends_with("\"rows\":500000,\"errors\":0}\r\n0\r\n\r\n"),
        "{}",
        &told[told.len() - 80..]
    );
}

#[tokio::test]
async fn a_client_that_is_gone_takes_its_units_with_it() {
    let (server, mut arrivals) = start(config(), MIB).await;
    let mut raw = server.connect().await;
    raw.send(post(ROWS, "application/json", "{\"a\":1}")).await;
    let submission = arrivals.recv().await.unwrap();
    assert!(!submission.reply.is_abandoned());
    drop(raw);
    eventually("the unit is abandoned", || submission.reply.is_abandoned()).await;
}

#[tokio::test]
async fn a_reset_connection_takes_its_units_with_it() {
    let (server, mut arrivals) = start(config(), MIB).await;
    let mut raw = server.connect().await;
    raw.send(post(ROWS, "application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n"))
        .await;
    let submission = arrivals.recv().await.unwrap();
    raw.0.set_zero_linger().unwrap();
    drop(raw);
    eventually("the units are abandoned", || {
        submission.reply.is_abandoned()
    })
    .await;
}

#[tokio::test]
async fn a_stop_finishes_what_was_accepted() {
    let (mut server, mut arrivals) = start(config(), MIB).await;
    let mut silent = server.connect().await;
    let mut idle = server.connect().await;
    idle.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert_eq!(idle.reply().await.status, 200);
    let mut busy = server.connect().await;
    busy.send(post(ROWS, "application/json", "{\"a\":1}")).await;
    let submission = arrivals.recv().await.unwrap();
    server.stop.cancel();
    // Those without a request are closed at once, although another one is still under way.
    assert_eq!(idle.rest().await, "");
    assert_eq!(silent.rest().await, "");
    assert!(!server.running.is_finished());
    answer(submission, &mut good);
    let told = busy.rest().await;
    assert!(told.starts_with("HTTP/1.1 201"), "{told}");
    (&mut server.running).await.unwrap();
    assert!(tokio::net::TcpStream::connect(server.addr).await.is_err());
}

#[tokio::test]
async fn past_the_number_of_connections_they_wait() {
    let (server, _) = serve_with(
        HttpConfig {
            max_connections: 2,
            ..config()
        },
        good,
    )
    .await;
    let health = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let (mut a, mut b, mut c) = (
        server.connect().await,
        server.connect().await,
        server.connect().await,
    );
    for raw in [&mut a, &mut b] {
        raw.send(health).await;
        assert_eq!(raw.reply().await.status, 200);
    }
    c.send(health).await;
    let early = tokio::time::timeout(Duration::from_millis(50), c.reply()).await;
    assert!(early.is_err(), "a third connection was served");
    drop(a);
    assert_eq!(c.reply().await.status, 200);
}

#[tokio::test]
async fn idle_connections_are_closed_in_time() {
    let idle_timeout = Duration::from_millis(50);
    let (server, _) = serve_with(
        HttpConfig {
            idle_timeout,
            ..config()
        },
        good,
    )
    .await;
    let mut silent = server.connect().await;
    let mut told = String::new();
    // On a busy machine a connection may be idle for too long before its request.
    while told.is_empty() {
        let mut raw = server.connect().await;
        raw.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await;
        told = raw.rest().await;
    }
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    assert_eq!(silent.rest().await, "");
    eventually("no connection is open", || {
        server.metrics().contains("windrow_http_connections 0")
    })
    .await;
}

#[tokio::test]
async fn a_request_waits_longer_than_idle_connections() {
    let config = HttpConfig {
        idle_timeout: Duration::from_millis(20),
        body_timeout: Duration::from_millis(20),
        header_timeout: Duration::from_millis(20),
        ..config()
    };
    let (server, mut arrivals) = start(config, MIB).await;
    let (mut raw, submission) = loop {
        let mut raw = server.connect().await;
        raw.send(post(ROWS, "application/json", "{\"a\":1}")).await;
        // On a busy machine a connection may be idle for too long before its request.
        tokio::select! {
            submission = arrivals.recv() => break (raw, submission.unwrap()),
            told = raw.rest() => assert_eq!(told, ""),
        }
    };
    // An idle connection beside it is given up meanwhile.
    assert_eq!(server.connect().await.rest().await, "");
    assert_eq!(server.connect().await.rest().await, "");
    assert!(!submission.reply.is_abandoned());
    answer(submission, &mut good);
    assert_eq!(raw.reply().await.status, 201);
}
