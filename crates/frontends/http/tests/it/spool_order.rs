//! What one client asks for keeps its order, whether it goes by the lane or by the spool.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use serde_json::json;
use windrow_core::{Op, Write};
use windrow_http::{Ack, HttpConfig};

use crate::spooled::{FakeSpool, Spooled, start};
use crate::support::{Raw, Reply, answer, client, config, good, request};

const ROWS: &str = "/v1/tables/t/rows";
const ROW: &str = "/v1/tables/t/rows/1";
const BOUNDARY: &str = "multipart/mixed; boundary=x";

/// Writes a row by the spool, all the way.
async fn spool_row(raw: &mut Raw, spooled: &mut Spooled) -> Reply {
    let row = request("POST", &format!("{ROWS}?ack=spool"), "{\"a\":1}");
    raw.send(row).await;
    take(spooled, 1).await;
    raw.reply().await
}

/// The spool takes the next submission, which has so many units.
async fn take(spooled: &mut Spooled, units: usize) {
    let submission = spooled.entries.recv().await.unwrap();
    assert_eq!(submission.units.len(), units);
    spooled.spool.take(submission, |_| Ok(()));
}

/// The lane executes the next submission.
async fn execute(spooled: &mut Spooled) -> Vec<Op> {
    let submission = spooled.lane.recv().await.unwrap();
    let writes = submission.units.iter().flat_map(|unit| unit.writes());
    let ops = writes.map(|write: &Write| write.shape.op).collect();
    answer(submission, &mut good);
    ops
}

fn envelope(parts: &[String]) -> String {
    let parts = parts
        .iter()
        .map(|part| format!("--x\r\ncontent-type: application/http\r\n\r\n{part}\r\n"));
    parts.collect::<String>() + "--x--\r\n"
}

fn part(method: &str, target: &str, body: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\ncontent-type: application/json\r\n\r\n{body}")
}

#[tokio::test]
async fn what_follows_waits_for_what_the_spool_has() {
    for (method, target, body) in [
        ("PATCH", ROW, "{\"a\":2}"),
        ("DELETE", ROW, ""),
        ("GET", ROW, ""),
        ("POST", ROWS, "{\"a\":2}"),
        (
            "POST",
            "/v1/tables/t/rows?returning=a&ack=spool",
            "{\"a\":2}",
        ),
        ("POST", "/v1/tables/t/rows?atomic=true", "[{\"a\":2}]"),
    ] {
        let mut spooled = start(config(), Ack::Commit).await;
        let (mut raw, mut other) = (
            spooled.server.connect().await,
            spooled.server.connect().await,
        );
        assert_eq!(spool_row(&mut raw, &mut spooled).await.status, 202);
        raw.send(request(method, target, body)).await;
        spooled.spool.has_waiting(1).await;
        assert!(spooled.lane.try_recv().is_err(), "{method} {target}");
        // Nobody else waits.
        other.send(request("DELETE", ROW, "")).await;
        assert_eq!(execute(&mut spooled).await, [Op::Delete]);
        assert_eq!(other.reply().await.status, 200);
        spooled.spool.apply();
        execute(&mut spooled).await;
        // What is applied is asked for once.
        let asked = spooled.spool.asked.load(SeqCst);
        raw.send(request("DELETE", ROW, "")).await;
        execute(&mut spooled).await;
        assert_eq!(spooled.spool.asked.load(SeqCst), asked);
    }
}

/// Further writes by the spool wait for nobody.
#[tokio::test]
async fn pipelined_requests_keep_their_order() {
    let mut spooled = start(config(), Ack::Spool).await;
    let mut raw = spooled.server.connect().await;
    let row = request("POST", ROWS, "{\"a\":1}");
    let requests = [
        row.clone(),
        row.clone(),
        request("PATCH", ROW, "{\"a\":2}"),
        row,
    ];
    raw.send(requests.concat()).await;
    take(&mut spooled, 1).await;
    take(&mut spooled, 1).await;
    spooled.spool.has_waiting(1).await;
    assert!(spooled.lane.try_recv().is_err() && spooled.entries.try_recv().is_err());
    spooled.spool.apply();
    assert_eq!(execute(&mut spooled).await, [Op::Update]);
    take(&mut spooled, 1).await;
    let mut told = Vec::new();
    for _ in 0..4 {
        let reply = raw.reply().await;
        let place = reply.header("windrow-place").map(ToOwned::to_owned);
        told.push((reply.status, place));
    }
    let place = |at| Some(format!("00000000000000000000000000000abc-{at}"));
    let all = [
        (202, place(1)),
        (202, place(2)),
        (200, None),
        (202, place(3)),
    ];
    assert_eq!(told, all);
}

#[tokio::test]
async fn reads_need_not_wait_where_that_is_set() {
    let config = HttpConfig {
        read_your_writes: false,
        ..config()
    };
    let mut spooled = start(config, Ack::Spool).await;
    let mut raw = spooled.server.connect().await;
    spool_row(&mut raw, &mut spooled).await;
    raw.send(request("GET", ROW, "")).await;
    assert_eq!(execute(&mut spooled).await, [Op::Get]);
    assert_eq!(raw.reply().await.status, 404);
    raw.send(request("DELETE", ROW, "")).await;
    spooled.spool.has_waiting(1).await;
    spooled.spool.apply();
    assert_eq!(execute(&mut spooled).await, [Op::Delete]);
}

#[tokio::test]
async fn a_place_is_waited_for_by_whoever_names_it() {
    let mut spooled = start(config(), Ack::Commit).await;
    let mut raw = spooled.server.connect().await;
    let reply = spool_row(&mut raw, &mut spooled).await;
    let place = reply.header("windrow-place").unwrap().to_owned();
    let get = json!({"operations": [{"op": "get", "table": "t", "key": 1}]}).to_string();
    for (method, target, body) in [
        ("GET", format!("{ROW}?after={place}"), ""),
        ("PATCH", format!("{ROW}?key=a&after={place}"), "{\"a\":2}"),
        (
            "POST",
            format!("{ROWS}?after={place}&atomic=true"),
            "[{\"a\":1}]",
        ),
        ("POST", format!("/v1/batch?after={place}"), &get),
    ] {
        let mut other = spooled.server.connect().await;
        other.send(request(method, &target, body)).await;
        spooled.spool.has_waiting(1).await;
        assert!(spooled.lane.try_recv().is_err(), "{target}");
        drop(other);
        spooled.spool.has_waiting(0).await;
    }
    spooled.spool.apply();
    let mut other = spooled.server.connect().await;
    other
        .send(request("GET", &format!("{ROW}?after={place}"), ""))
        .await;
    assert_eq!(execute(&mut spooled).await, [Op::Get]);
}

#[tokio::test]
async fn a_place_that_nobody_was_told_is_refused() {
    let mut spooled = start(config(), Ack::Commit).await;
    let known = "00000000000000000000000000000abc";
    for after in [
        format!("{known}-1"),
        format!("{}-0", known.replace('a', "f")),
        format!("{known}-x"),
        String::new(),
        format!("{known}-0&after={known}-0"),
    ] {
        let mut raw = spooled.server.connect().await;
        raw.send(request("GET", &format!("{ROW}?after={after}"), ""))
            .await;
        let reply = raw.reply().await;
        assert_eq!(reply.status, 400, "{after}: {}", reply.body);
    }
    let mut raw = spooled.server.connect().await;
    raw.send(request("GET", &format!("/healthz?after={known}-0"), ""))
        .await;
    assert_eq!(raw.reply().await.status, 400);
    assert!(spooled.lane.try_recv().is_err());
}

#[tokio::test]
async fn who_leaves_while_waiting_is_forgotten() {
    let mut spooled = start(config(), Ack::Spool).await;
    let mut raw = spooled.server.connect().await;
    spool_row(&mut raw, &mut spooled).await;
    raw.send(request("PATCH", ROW, "{\"a\":2}")).await;
    spooled.spool.has_waiting(1).await;
    drop(raw);
    spooled.spool.has_waiting(0).await;
    spooled.spool.apply();
    assert!(spooled.lane.try_recv().is_err());
    assert_eq!(spooled.server.budget.held(), 0);
}

/// The database is away for longer than a request waits: at one moment the time is over.
async fn time_is_over(spool: &FakeSpool) {
    spool.has_waiting(1).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn nobody_waits_for_ever() {
    let mut spooled = start(config(), Ack::Spool).await;
    let mut raw = spooled.server.connect().await;
    spool_row(&mut raw, &mut spooled).await;
    spool_row(&mut raw, &mut spooled).await;
    raw.send(request("PATCH", ROW, "{\"a\":2}")).await;
    time_is_over(&spooled.spool).await;
    let reply = raw.reply().await;
    assert_eq!(
        (reply.status, reply.header("retry-after").is_some()),
        (503, true)
    );
    let error: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert_eq!(error["error"]["code"], "55000");
    assert!(
        message.contains("60 seconds") && message.contains("2 entries"),
        "{message}"
    );
    assert!(spooled.lane.try_recv().is_err());
    // The next one still has to wait, with patience of its own.
    raw.send(request("DELETE", ROW, "")).await;
    spooled.spool.has_waiting(1).await;
    spooled.spool.stop();
    let reply = raw.reply().await;
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (503, Some("1"))
    );
}

#[tokio::test]
async fn operations_of_a_batch_keep_their_order() {
    let mut spooled = start(config(), Ack::Spool).await;
    let insert = json!({"op": "insert", "table": "t", "row": {"a": 1}});
    let delete = json!({"op": "delete", "table": "t", "key": 1});
    let body = json!({"operations": [insert, insert, delete, insert, delete]});
    let url = spooled.server.url("/v1/batch");
    let told = tokio::spawn(crate::support::send(client().post(url).json(&body)));
    take(&mut spooled, 2).await;
    spooled.spool.has_waiting(1).await;
    assert!(spooled.lane.try_recv().is_err() && spooled.entries.try_recv().is_err());
    spooled.spool.apply();
    let submission = spooled.lane.recv().await.unwrap();
    assert!(
        spooled.entries.try_recv().is_err(),
        "the delete comes first"
    );
    answer(submission, &mut good);
    take(&mut spooled, 1).await;
    spooled.spool.has_waiting(1).await;
    spooled.spool.apply();
    assert_eq!(execute(&mut spooled).await, [Op::Delete]);
    let (accepted, rows) = (json!({"accepted": 1}), json!({"rows": 1}));
    let results = json!([accepted, accepted, rows, accepted, rows]);
    let report = json!({"results": results, "errors": 0});
    assert_eq!(told.await.unwrap(), (202, report));
}

/// Each operation that comes too late says so; those that are taken stay.
#[tokio::test]
async fn a_batch_waits_once_for_a_database_that_is_away() {
    let mut spooled = start(config(), Ack::Spool).await;
    let insert = json!({"op": "insert", "table": "t", "row": {"a": 1}});
    let delete = json!({"op": "delete", "table": "t", "key": 1});
    let body = json!({"operations": [insert, delete, insert, delete]});
    let url = spooled.server.url("/v1/batch");
    let told = tokio::spawn(crate::support::send(client().post(url).json(&body)));
    take(&mut spooled, 1).await;
    time_is_over(&spooled.spool).await;
    take(&mut spooled, 1).await;
    let (status, report) = told.await.unwrap();
    assert_eq!((status, &report["errors"]), (207, &json!(2)));
    for (at, word) in ["accepted", "error", "accepted", "error"]
        .iter()
        .enumerate()
    {
        assert!(report["results"][at].get(word).is_some(), "{report}");
    }
    assert!(spooled.lane.try_recv().is_err());
}

#[tokio::test]
async fn parts_of_an_envelope_keep_their_order() {
    let mut spooled = start(config(), Ack::Spool).await;
    let insert = part("POST", ROWS, "{\"a\":1}");
    let parts = [
        insert.clone(),
        insert.clone(),
        part("PATCH", ROW, "{\"a\":2}"),
        part("DELETE", ROW, ""),
        insert,
    ];
    let request = client()
        .post(spooled.server.url("/v1/batch"))
        .header("content-type", BOUNDARY)
        .body(envelope(&parts));
    let told = tokio::spawn(async { request.send().await.unwrap().text().await.unwrap() });
    // Both are under way at the same moment; what follows waits for both.
    let first = spooled.entries.recv().await.unwrap();
    let second = spooled.entries.recv().await.unwrap();
    spooled.spool.take(first, |_| Ok(()));
    assert!(spooled.lane.try_recv().is_err());
    spooled.spool.take(second, |_| Ok(()));
    spooled.spool.has_waiting(1).await;
    assert!(spooled.lane.try_recv().is_err());
    spooled.spool.apply();
    let update = spooled.lane.recv().await.unwrap();
    let delete = spooled.lane.recv().await.unwrap();
    answer(update, &mut good);
    assert!(
        spooled.entries.try_recv().is_err(),
        "the delete is not answered"
    );
    answer(delete, &mut good);
    take(&mut spooled, 1).await;
    let told = told.await.unwrap();
    let statuses: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("HTTP/1.1 "))
        .map(|line| &line[..3])
        .collect();
    assert_eq!(statuses, ["202", "202", "200", "200", "202"]);
    assert_eq!(told.matches("windrow-place: ").count(), 3, "{told}");
}
