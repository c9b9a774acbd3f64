//! The memory budget: nothing is held that was not charged, and past it clients feel back-pressure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windrow_core::{FaultClass, WriteDone};
use windrow_http::HttpConfig;

use crate::support::{MIB, answer, client, config, eventually, good, post, post_text, start};

const ROWS: &str = "/v1/tables/t/rows";

#[tokio::test]
async fn a_full_budget_is_429_for_single_rows() {
    let (server, mut arrivals) = start(config(), MIB).await;
    let hog = server.budget.try_take(MIB - 100).unwrap();
    let response = client()
        .post(server.rows())
        .body("{\"a\":1}")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    let text = response.text().await.unwrap();
    assert!(
        text.contains("53200") && text.contains("limits.memory"),
        "{text}"
    );
    for (kind, body) in [
        ("application/json", "[{\"a\":1}]"),
        ("application/x-ndjson", "{\"a\":1}"),
        ("text/csv", "a\n1"),
    ] {
        assert_eq!(post_text(server.rows(), kind, body).await.0, 429, "{kind}");
    }
    drop(hog);
    tokio::spawn(async move {
        while let Some(submission) = arrivals.recv().await {
            answer(submission, &mut good);
        }
    });
    assert_eq!(
        post_text(server.rows(), "application/json", "{\"a\":1}")
            .await
            .0,
        201
    );
}

/// What is announced keeps nobody out; what has come is counted.
#[tokio::test]
async fn a_large_row_is_charged_as_it_comes() {
    let (server, _arrivals) = start(config(), MIB).await;
    let head = format!(
        "POST {ROWS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 600000\r\n\r\n{{\"a\":\""
    );
    let begin = async |bytes: usize| {
        let mut raw = server.connect().await;
        raw.send(format!("{head}{}", "x".repeat(bytes))).await;
        raw
    };
    let mut announced = Vec::new();
    for _ in 0..8 {
        announced.push(begin(1).await);
    }
    let first = begin(400_000).await;
    eventually("the body is charged", || server.budget.held() >= 400_000).await;
    let mut second = begin(500_000).await;
    let told = second.rest().await;
    assert!(told.starts_with("HTTP/1.1 429"), "{told}");
    drop((first, announced));
    eventually("the memory is given back", || server.budget.held() == 0).await;
}

/// Who holds memory that others want has to get on; a byte from time to time is not enough.
#[tokio::test]
async fn a_greedy_body_that_crawls_is_ended() {
    let config = HttpConfig {
        body_timeout: Duration::from_millis(400),
        ..config()
    };
    let (server, _arrivals) = start(config, MIB).await;
    let mut raw = server.connect().await;
    raw.send(format!(
        "POST {ROWS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 600000\r\n\r\n{{\"a\":\"{}",
        "x".repeat(400_000)
    ))
    .await;
    eventually("the body is charged", || server.budget.held() >= 400_000).await;
    let (mut read, mut write) = tokio::io::split(raw.0);
    let crawl = async {
        loop {
            // It may be closed by now.
            tokio::io::AsyncWriteExt::write_all(&mut write, b"x")
                .await
                .ok();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let mut told = [0; 12];
    let answer = async {
        tokio::io::AsyncReadExt::read_exact(&mut read, &mut told)
            .await
            .unwrap();
    };
    let others = async {
        while server.budget.held() > 0 {
            // Refused, which shows that memory is wanted.
            drop(server.budget.try_take(MIB - 100_000));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = crawl => {}
        ((), ()) = async { tokio::join!(answer, others) } => {}
    }
    assert_eq!(&told, b"HTTP/1.1 408");
}

/// A body of 50 MB against a lane that stands still: it is read as far as the portions go, and no
/// further.
#[tokio::test]
async fn a_stalled_lane_stops_the_reading() {
    let (server, mut arrivals) = start(config(), 16 * MIB).await;
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let line = format!("{{\"a\":1,\"text\":\"{}\"}}\n", "x".repeat(480));
    let lines = 50_000_000 / line.len();
    let mut raw = server.connect().await;
    raw.send(format!(
        "POST {ROWS}?results=none HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ncontent-length: {}\r\n\r\n",
        lines * line.len()
    ))
    .await;
    let writer = tokio::spawn(async move {
        for _ in 0..lines {
            raw.send(&line).await;
            count.fetch_add(line.len(), Ordering::Relaxed);
        }
        let mut text = String::new();
        while !text.ends_with("0\r\n\r\n") {
            text.push(char::from(
                tokio::io::AsyncReadExt::read_u8(&mut raw.0).await.unwrap(),
            ));
        }
        text
    });
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(arrivals.recv().await.unwrap());
    }
    // The socket's buffers fill up, then the client stands still too.
    let (mut before, mut same) = (0, 0);
    eventually("the client is held up", || {
        let now = sent.load(Ordering::Relaxed);
        same = if now == before { same + 1 } else { 0 };
        before = now;
        same > 50
    })
    .await;
    assert!(sent.load(Ordering::Relaxed) < 20_000_000);
    assert!(server.budget.held() < 2 * MIB, "{}", server.budget.held());
    assert!(arrivals.try_recv().is_err());
    tokio::spawn(async move {
        for submission in held {
            answer(submission, &mut good);
        }
        while let Some(submission) = arrivals.recv().await {
            answer(submission, &mut good);
        }
    });
    let told = writer.await.unwrap();
    assert!(
        told.contains(&format!("{{\"rows\":{lines},\"errors\":0}}")),
        "{told}"
    );
    assert_eq!(server.budget.held(), 0);
}

/// Many long bodies over a small budget: they take turns, all of them end.
#[tokio::test]
async fn long_bodies_share_a_small_budget() {
    let (server, mut arrivals) = start(config(), MIB).await;
    tokio::spawn(async move {
        while let Some(submission) = arrivals.recv().await {
            answer(submission, &mut good);
        }
    });
    let line = format!("{{\"text\":\"{}\"}}\n", "x".repeat(20_000));
    let body = line.repeat(50);
    let posts: Vec<_> = (0..16)
        .map(|_| {
            tokio::spawn(post_text(
                server.rows(),
                "application/x-ndjson",
                body.clone(),
            ))
        })
        .collect();
    for post in posts {
        let (status, told) = post.await.unwrap();
        assert_eq!(status, 200, "{told}");
        assert_eq!(told["rows"], 50);
    }
    assert_eq!(server.budget.held(), 0);
}

/// Bodies whose rows are large hold memory while they wait for more. They must not wait for each
/// other for ever.
#[tokio::test]
async fn large_rows_over_a_small_budget_all_end() {
    let hasty = HttpConfig {
        body_timeout: Duration::from_millis(300),
        ..config()
    };
    let (server, mut arrivals) = start(hasty, MIB).await;
    tokio::spawn(async move {
        while let Some(submission) = arrivals.recv().await {
            answer(submission, &mut good);
        }
    });
    let row = format!("{{\"text\":\"{}\"}}\n", "x".repeat(300_000));
    let posts: Vec<_> = (0..8)
        .map(|_| {
            let body = row.repeat(3);
            tokio::spawn(post_text(server.rows(), "application/x-ndjson", body))
        })
        .collect();
    for post in posts {
        let (status, told) = post.await.unwrap();
        assert!(matches!(status, 200 | 429), "{status}: {told}");
        assert!(status == 429 || told["rows"] == 3, "{told}");
    }
    assert_eq!(server.budget.held(), 0);
}

#[tokio::test]
async fn results_that_do_not_fit_end_the_body() {
    let hasty = HttpConfig {
        body_timeout: Duration::from_millis(200),
        ..config()
    };
    let (server, mut arrivals) = start(hasty, MIB).await;
    tokio::spawn(async move {
        let mut rule = |_: &windrow_core::Write| -> Result<WriteDone, windrow_core::Fault> {
            Err(windrow_core::Fault::new(
                FaultClass::Check,
                "23514",
                "x".repeat(300),
            ))
        };
        while let Some(submission) = arrivals.recv().await {
            answer(submission, &mut rule);
        }
    });
    let body = "{\"a\":1}\n".repeat(100_000);
    let (status, told) = post_text(server.rows(), "application/x-ndjson", body.clone()).await;
    assert_eq!(status, 429);
    assert!(
        told["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("results=errors or none")
    );
    assert!(!told["results"].as_array().unwrap().is_empty());
    assert_eq!(server.budget.held(), 0);
    let (status, told) = post_text(
        server.rows() + "?results=none",
        "application/x-ndjson",
        body,
    )
    .await;
    assert_eq!((status, &told["errors"]), (207, &100_000.into()));
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_memory_back() {
    let (server, mut arrivals) = start(config(), 16 * MIB).await;
    let mut raw = server.connect().await;
    raw.send(post(
        ROWS,
        "application/x-ndjson",
        &"{\"a\":1}\n".repeat(5000),
    ))
    .await;
    let submission = arrivals.recv().await.unwrap();
    assert!(server.budget.held() > 0);
    raw.0.set_zero_linger().unwrap();
    drop(raw);
    eventually("the units are abandoned", || {
        submission.reply.is_abandoned()
    })
    .await;
    drop(submission);
    arrivals.close();
    while arrivals.recv().await.is_some() {}
    eventually("the memory is given back", || server.budget.held() == 0).await;
}

/// Elements of two bytes take sixteen each before they are read, and an error each.
#[tokio::test]
async fn elements_of_a_batch_are_charged() {
    let body = |count: usize| format!("{{\"operations\":[{}1]}}", "1,".repeat(count - 1));
    for (budget, count, expected) in [
        (MIB, 500, 207),
        (MIB, 60_000, 429),
        (64 * MIB, 100_001, 413),
    ] {
        let (server, _lane) = start(config(), budget).await;
        let url = server.url("/v1/batch");
        let (status, told) = post_text(url, "application/json", body(count)).await;
        assert_eq!(status, expected, "{count}: {}", told["error"]);
        assert_eq!(server.budget.held(), 0, "{count}");
    }
    let (server, _lane) = start(config(), MIB).await;
    let url = server.url("/v1/batch");
    let many = "1,".repeat(2000) + "1";
    for part in [
        format!("\"op\":\"get\",\"key\":[{many}]"),
        format!(
            "\"op\":\"delete\",\"key\":1,\"returning\":[{}]",
            many.replace('1', "\"a\"")
        ),
    ] {
        let body = format!("{{\"operations\":[{{\"table\":\"t\",{part}}}]}}");
        let (status, told) = post_text(url.clone(), "application/json", body).await;
        let code = &told["results"][0]["error"]["code"];
        assert_eq!((status, code), (207, &"22023".into()), "{told}");
    }
}
