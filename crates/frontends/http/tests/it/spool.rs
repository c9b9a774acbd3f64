//! What is answered by the spool, and how.

use serde_json::{Value as Json, json};
use windrow_core::{Fault, FaultClass, OnConflict, Op, Value, Write};
use windrow_http::{Ack, Http};

use crate::spooled::{Answering, serve, start};
use crate::support::{self, client, config, eventually, good, post, post_text, send};

const NDJSON: &str = "application/x-ndjson";

fn all(_: &Write) -> Result<(), Fault> {
    Ok(())
}

fn full() -> Fault {
    Fault::new(FaultClass::Overloaded, "53100", "the spool is full")
}

/// Refuses rows whose first value is 2.
fn no_twos(write: &Write) -> Result<(), Fault> {
    match write.row()[0] {
        Value::Int(2) => Err(full()),
        _ => Ok(()),
    }
}

/// The status, the place that was told, and the JSON.
async fn asked(request: reqwest::RequestBuilder) -> (u16, Option<String>, Json) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let place = response.headers().get("windrow-place");
    let place = place.map(|place| place.to_str().unwrap().to_owned());
    let text = response.text().await.unwrap();
    (status, place, serde_json::from_str(&text).unwrap())
}

fn place(position: u64) -> Option<String> {
    Some(format!("00000000000000000000000000000abc-{position}"))
}

#[tokio::test]
async fn a_row_is_accepted_and_its_place_told() {
    let Answering {
        server,
        lane,
        entries,
        ..
    } = serve(config(), Ack::Commit, all).await;
    for (at, query) in ["?ack=spool", "?ack=spool&on_conflict=update"]
        .into_iter()
        .enumerate()
    {
        let told = asked(client().post(server.rows() + query).body("{\"a\":1}")).await;
        assert_eq!(told, (202, place(at as u64 + 1), json!({"accepted": 1})));
    }
    assert!(lane.writes().is_empty());
    assert_eq!(entries.writes()[1].shape.on_conflict, OnConflict::Update);
    let told = asked(client().post(server.rows()).body("{\"a\":1}")).await;
    assert_eq!(told, (201, None, json!({"rows": 1})));
    let metrics = server.metrics();
    assert!(metrics.contains("windrow_http_rows_total{ack=\"spool\"} 2"));
    assert!(metrics.contains("windrow_http_rows_total{ack=\"commit\"} 1"));
    assert_eq!(server.budget.held(), 0);
}

#[tokio::test]
async fn the_server_has_a_default() {
    let Answering {
        server,
        lane,
        entries,
        spool,
    } = serve(config(), Ack::Spool, all).await;
    let rows = || client().post(server.rows()).body("{\"a\":1}");
    assert_eq!(asked(rows()).await.0, 202);
    spool.apply();
    let by_commit = client().post(server.rows() + "?ack=commit");
    assert_eq!(asked(by_commit.body("{\"a\":1}")).await.0, 201);
    assert_eq!((lane.writes().len(), entries.writes().len()), (1, 1));
}

/// What has more to tell than that it was taken waits for the database, whatever was asked.
#[tokio::test]
async fn all_else_is_answered_once_it_is_committed() {
    let Answering {
        server,
        lane,
        entries,
        ..
    } = serve(config(), Ack::Spool, all).await;
    let row = server.rows() + "/1?ack=spool";
    let returning = server.rows() + "?returning=id&ack=spool";
    for (request, status) in [
        (client().patch(&row).body("{\"a\":1}"), 200),
        (client().delete(&row), 200),
        (client().post(returning).body("{\"a\":1}"), 201),
    ] {
        assert_eq!(asked(request).await, (status, None, json!({"rows": 1})));
    }
    let ops: Vec<Op> = lane.writes().iter().map(|w| w.shape.op).collect();
    assert_eq!(ops, [Op::Update, Op::Delete, Op::Insert]);
    assert!(entries.writes().is_empty());
}

#[tokio::test]
async fn many_rows_have_a_report_of_what_was_accepted() {
    let Answering {
        server, entries, ..
    } = serve(config(), Ack::Spool, no_twos).await;
    for (kind, body) in [
        ("application/json", "[{\"a\":1},{\"a\":3}]"),
        (NDJSON, "{\"a\":1}\n{\"a\":3}\n"),
        ("text/csv", "a\n1\n3\n"),
    ] {
        let report =
            json!({"results": [{"accepted": 1}, {"accepted": 1}], "accepted": 2, "errors": 0});
        assert_eq!(
            post_text(server.rows(), kind, body).await,
            (202, report),
            "{kind}"
        );
    }
    let body = "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n";
    let error = json!({"code": "53100", "message": "the spool is full"});
    let report = json!({"results": [{"accepted": 1}, {"error": error}, {"accepted": 1}], "accepted": 2, "errors": 1});
    assert_eq!(
        post_text(server.rows(), NDJSON, body).await,
        (207, report),
        "one was refused"
    );
    let report = json!({"results": [{"index": 1, "error": error}], "accepted": 2, "errors": 1});
    let errors = server.rows() + "?results=errors";
    assert_eq!(post_text(errors, NDJSON, body).await, (207, report));
    assert!(entries.units().iter().all(|unit| unit.len() == 1));
}

#[tokio::test]
async fn a_long_body_is_streamed_into_the_spool() {
    let Answering {
        server,
        lane,
        entries,
        ..
    } = serve(config(), Ack::Spool, all).await;
    let request = client()
        .post(server.rows() + "?results=none")
        .header("content-type", NDJSON)
        .body("{\"a\":1}\n".repeat(20_000));
    let told = asked(request).await;
    let report = json!({"accepted": 20_000, "errors": 0});
    assert_eq!(told, (202, place(20_000), report));
    assert!(entries.submissions().len() >= 20 && lane.writes().is_empty());
    let empty = client().post(server.rows()).header("content-type", NDJSON);
    let (status, told, _) = asked(empty.body("")).await;
    assert_eq!((status, told), (202, place(20_000)), "a body without rows");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_one_result() {
    let Answering {
        server, entries, ..
    } = serve(config(), Ack::Spool, all).await;
    let request = client().post(server.rows()).header("content-type", NDJSON);
    let (status, told, report) = asked(request.body("{\"a\":1}\n{\"a\"}\n")).await;
    assert_eq!((status, told), (207, place(1)));
    assert_eq!(
        (&report["accepted"], &report["results"][1]["error"]["code"]),
        (&json!(1), &json!("22P02"))
    );
    assert_eq!(entries.writes().len(), 1);
}

#[tokio::test]
async fn a_spool_that_refuses_is_told_by_its_class() {
    let faults = [
        (full(), 429),
        (Fault::unavailable("the disk has failed"), 503),
        (Fault::unknown("not known"), 504),
        (Fault::too_large("more than an entry may have"), 413),
    ];
    for (fault, status) in faults {
        let given = fault.clone();
        let refuse = move |_: &Write| Err(given.clone());
        let Answering { server, .. } = serve(config(), Ack::Spool, refuse).await;
        let request = client().post(server.rows()).body("{\"a\":1}");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{fault}");
        let retry = response.headers().contains_key("retry-after");
        assert_eq!(retry, matches!(status, 429 | 503), "{fault}");
        let atomic = client().post(server.rows() + "?atomic=true");
        let (told, _, error) = asked(atomic.body("[{\"a\":1}]")).await;
        assert_eq!(
            (told, &error["error"]["code"]),
            (status, &json!(fault.code))
        );
    }
}

#[tokio::test]
async fn rows_of_an_atomic_body_are_one_unit() {
    let Answering {
        server,
        lane,
        entries,
        ..
    } = serve(config(), Ack::Spool, all).await;
    let request = client().post(server.rows() + "?atomic=true");
    let told = asked(request.body("[{\"a\":1},{\"a\":2}]")).await;
    let report = json!({"results": [{"accepted": 1}, {"accepted": 1}], "accepted": 2, "errors": 0});
    assert_eq!(told, (202, place(1), report));
    assert_eq!((entries.units().len(), entries.writes().len()), (1, 2));
    let request = client().post(server.rows() + "?atomic=true");
    assert_eq!(asked(request.body("[]")).await.0, 202);
    assert_eq!(entries.units().len(), 1, "nothing is no entry");
    assert!(lane.writes().is_empty());
}

#[tokio::test]
async fn operations_of_a_batch_say_when_they_are_answered() {
    let Answering {
        server,
        lane,
        entries,
        ..
    } = serve(config(), Ack::Commit, no_twos).await;
    let url = server.url("/v1/batch");
    let insert = |id: i64, ack: Json| json!({"id": id, "op": "insert", "table": "t", "row": {"a": id}, "ack": ack});
    let batch = |operations: Json| client().post(&url).json(&json!({"operations": operations}));
    let upsert = json!({"id": 4, "op": "upsert", "table": "t", "row": {"a": 4}});
    let (status, told, report) = asked(batch(json!([
        insert(1, "spool".into()),
        insert(3, "spool".into())
    ])))
    .await;
    assert_eq!((status, told), (202, place(2)));
    assert_eq!(report["results"][1], json!({"id": 3, "accepted": 1}));
    let two = batch(json!([
        insert(1, "spool".into()),
        insert(2, "spool".into())
    ]));
    let (status, _, report) = asked(two).await;
    assert_eq!((status, &report["errors"]), (207, &json!(1)));
    assert_eq!(report["results"][1]["error"]["code"], "53100");
    let (status, told, report) = asked(batch(json!([upsert]))).await;
    assert_eq!((status, told), (200, None));
    assert_eq!(report["results"][0], json!({"id": 4, "rows": 1}));
    let by_default = client()
        .post(server.url("/v1/batch?ack=spool"))
        .json(&json!({"operations": [upsert]}));
    let (status, _, report) = asked(by_default).await;
    assert_eq!(
        (status, &report["results"][0]["accepted"]),
        (202, &json!(1))
    );
    let wrong = asked(batch(json!([insert(1, "now".into()), upsert]))).await;
    let message = wrong.2["results"][0]["error"]["message"].to_string();
    assert!(message.contains("commit or spool"), "{message}");
    assert_eq!((lane.writes().len(), entries.writes().len()), (2, 5));
}

#[tokio::test]
async fn an_atomic_batch_is_spooled_where_all_of_it_can_be() {
    let Answering {
        server,
        lane,
        entries,
        ..
    } = serve(config(), Ack::Spool, all).await;
    let insert = json!({"op": "insert", "table": "t", "row": {"a": 1}});
    let update = json!({"op": "update", "table": "t", "row": {"a": 1}, "key": 1});
    let committed = json!({"op": "insert", "table": "t", "row": {"a": 1}, "ack": "commit"});
    for (operations, status, word) in [
        (json!([insert, update]), 200, "rows"),
        (json!([insert, committed]), 200, "rows"),
        (json!([insert, insert]), 202, "accepted"),
    ] {
        let body = json!({"atomic": true, "operations": operations});
        let (told, _, report) = asked(client().post(server.url("/v1/batch")).json(&body)).await;
        assert_eq!((told, &report["results"][1][word]), (status, &json!(1)));
    }
    let sizes = |seen: &support::Seen| seen.units().iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!((sizes(&lane), sizes(&entries)), (vec![2, 2], vec![2]));
}

#[tokio::test]
async fn a_server_without_a_spool_says_how_to_get_one() {
    let (server, seen) = support::serve(good).await;
    let place = place(1).unwrap();
    let row = server.rows() + "/1";
    let batch = |body: Json| client().post(server.url("/v1/batch")).json(&body);
    let insert = json!({"op": "insert", "table": "t", "row": {"a": 1}, "ack": "spool"});
    for request in [
        client()
            .post(server.rows() + "?ack=spool")
            .body("{\"a\":1}"),
        client()
            .post(server.rows() + "?ack=spool")
            .body("[{\"a\":1}]"),
        client().patch(row.clone() + "?ack=spool").body("{\"a\":1}"),
        client().get(format!("{row}?after={place}")),
        batch(json!({"atomic": true, "operations": [insert]})),
    ] {
        let (status, told) = send(request).await;
        let message = told["error"]["message"].to_string();
        assert!(status == 400 && message.contains("--spool DIR"), "{told}");
    }
    let (status, told) = send(batch(json!({"operations": [insert]}))).await;
    let message = told["results"][0]["error"]["message"].to_string();
    assert!(status == 207 && message.contains("--spool DIR"), "{told}");
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn a_default_that_cannot_be_kept_is_refused_at_start() {
    let (intake, _arrivals) = windrow_core::Intake::channel(windrow_core::Budget::new(1 << 20), 1);
    let ready = std::sync::Arc::new(std::sync::Mutex::new(Ok(())));
    let (mut services, _) = support::services(intake, ready, &[]);
    services.ack = Ack::Spool;
    let error = Http::bind(config(), services, Vec::new())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("--spool DIR"), "{error}");
}

#[tokio::test]
async fn a_client_that_is_gone_takes_its_units_out() {
    let mut spooled = start(config(), Ack::Spool).await;
    let mut raw = spooled.server.connect().await;
    raw.send(post("/v1/tables/t/rows", "application/json", "{\"a\":1}"))
        .await;
    let submission = spooled.entries.recv().await.unwrap();
    assert!(!submission.reply.is_abandoned());
    drop(raw);
    eventually("the unit is abandoned", || submission.reply.is_abandoned()).await;
}
