//! Many rows in, as many results out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use proptest::prelude::*;
use serde_json::json;
use windrow_core::{Fault, Value, Write, WriteDone};

use crate::support::{MIB, client, columns, good, post_text, send, serve, start, unique};

/// Fails where the first value is `bad`, by 0 rows where it is `skip`.
fn rule(write: &Write) -> Result<WriteDone, Fault> {
    match write.row().first() {
        Some(Value::Text(t)) if &**t == "bad" => Err(unique()),
        Some(Value::Text(t)) if &**t == "skip" => Ok(WriteDone::rows(0)),
        _ => Ok(WriteDone::rows(1)),
    }
}

const BODIES: [(&str, &str); 3] = [
    (
        "application/x-ndjson",
        "{\"a\":1}\n{\"a\":\"skip\"}\n\n{\"a\":\"bad\"}\n{\"a\":2}",
    ),
    (
        "application/json",
        "[{\"a\":1},{\"a\":\"skip\"} , {\"a\":\"bad\"},\n{\"a\":2}]",
    ),
    ("text/csv", "a\n1\nskip\nbad\n2\n"),
];

#[tokio::test]
async fn one_result_for_each_row_in_order_and_one_shape_for_all_kinds() {
    let (server, _) = serve(rule).await;
    for (kind, body) in BODIES {
        let (status, told) = post_text(server.rows(), kind, body).await;
        assert_eq!(status, 207, "{kind}");
        assert_eq!(
            told,
            json!({"results": [{"rows": 1}, {"rows": 0},
                {"error": {"code": "23505", "message": "the key is there already",
                    "detail": "Key (id)=(1) already exists.", "constraint": "t_pkey"}},
                {"rows": 1}], "rows": 2, "errors": 1}),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn the_shape_of_the_answer_is_the_same_for_none_and_one() {
    let (server, _) = serve(good).await;
    let one = json!({"results": [{"rows": 1}], "rows": 1, "errors": 0});
    let none = json!({"results": [], "rows": 0, "errors": 0});
    for (kind, body, told) in [
        ("application/json", "[{\"a\":1}]", &one),
        ("application/x-ndjson", "{\"a\":1}", &one),
        ("text/csv", "a\n1", &one),
        ("application/json", "[]", &none),
        ("application/x-ndjson", "", &none),
        ("text/csv", "a\n", &none),
    ] {
        let answer = post_text(server.rows(), kind, body).await;
        assert_eq!(answer, (200, told.clone()), "{kind} {body}");
    }
}

#[tokio::test]
async fn results_can_be_only_errors_or_none() {
    let (server, _) = serve(rule).await;
    let (kind, body) = BODIES[0];
    let (status, told) = post_text(server.rows() + "?results=errors", kind, body).await;
    assert_eq!(status, 207);
    assert_eq!(told["results"][0]["index"], 2);
    assert_eq!(told["results"][0]["error"]["code"], "23505");
    assert_eq!(told["results"].as_array().unwrap().len(), 1);
    let (status, told) = post_text(server.rows() + "?results=none", kind, body).await;
    assert_eq!((status, told), (207, json!({"rows": 2, "errors": 1})));
}

#[tokio::test]
async fn every_row_is_a_unit_and_consecutive_ones_share_their_shape() {
    let (server, seen) = serve(good).await;
    let body = "{\"a\":1}\n{\"a\":2}\n{\"b\":3}\n{\"a\":4}\n";
    post_text(server.rows(), "application/x-ndjson", body).await;
    let units = seen.units();
    assert!(units.iter().all(|u| u.len() == 1));
    let writes = seen.writes();
    assert!(std::sync::Arc::ptr_eq(&writes[0].shape, &writes[1].shape));
    assert_eq!(columns(&writes[2]), ["b"]);
    assert_eq!(writes[3].row()[0], Value::Int(4));
}

#[tokio::test]
async fn csv_knows_null_as_postgresql_does() {
    let (server, seen) = serve(good).await;
    let url = server.rows() + "?null=NA&delimiter=%3B";
    let body = "station;\"temp\"\nx;NA\n\"NA\";1.5\n;\n";
    assert_eq!(post_text(url, "text/csv; charset=utf-8", body).await.0, 200);
    let rows: Vec<_> = seen.writes().iter().map(|w| w.row().to_vec()).collect();
    let text = |text: &str| Value::text(text);
    assert_eq!(
        rows,
        [
            vec![text("x"), Value::Null],
            vec![text("NA"), Value::Number("1.5".into())],
            vec![text(""), text("")]
        ]
    );
}

#[tokio::test]
async fn a_line_that_cannot_be_read_is_one_result_among_the_others() {
    for (kind, body, line) in [
        (
            "application/x-ndjson",
            "{\"a\":1}\n{\"a\":\"bad\"}\n{\"a\":}\n{\"a\":4}\nmore\n",
            "line 3, column 6: ",
        ),
        ("text/csv", "a\n1\nbad\n2,3\n4\n5,\n", "line 4, column 1: "),
    ] {
        let (server, seen) = serve(rule).await;
        let (status, told) = post_text(server.rows(), kind, body).await;
        assert_eq!((status, &told["error"]), (207, &json!(null)), "{told}");
        let results = told["results"].as_array().unwrap();
        assert_eq!(results.len(), 5, "{told}");
        assert_eq!(results[2]["error"]["code"], "22P02", "{told}");
        let message = results[2]["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(line), "{message}");
        assert_eq!(results[3], json!({"rows": 1}), "{told}");
        assert!(results[4].get("error").is_some(), "{told}");
        assert_eq!((&told["rows"], &told["errors"]), (&json!(2), &json!(3)));
        assert_eq!(seen.writes().len(), 3);
        // All or nothing: such a line is the end of it.
        let (status, told) = post_text(server.rows() + "?atomic=true", kind, body).await;
        assert_eq!(status, 400, "{told}");
        assert_eq!(seen.writes().len(), 3);
    }
}

/// Thousands of lines of which every third cannot be read: more than a portion of each kind.
#[tokio::test]
async fn lines_that_cannot_be_read_keep_their_places() {
    let (server, seen) = serve(rule).await;
    let line = |n: usize| match n % 3 {
        0 => "{\n".to_owned(),
        1 => format!("{{\"a\":{n}}}\n"),
        _ => "{\"a\":\"bad\"}\n".to_owned(),
    };
    // A stretch without any row that can be read is longer than a portion.
    let body: String = (0..5000)
        .map(line)
        .chain((0..3000).map(|_| "{\n".to_owned()))
        .collect();
    let (status, told) = post_text(server.rows(), "application/x-ndjson", body).await;
    assert_eq!(status, 207);
    let results = told["results"].as_array().unwrap();
    assert_eq!(results.len(), 8000);
    for (n, result) in results.iter().enumerate() {
        let code = &result["error"]["code"];
        match n % 3 {
            1 if n < 5000 => assert_eq!(result, &json!({"rows": 1}), "{n}"),
            2 if n < 5000 => assert_eq!(code, "23505", "{n}"),
            _ => assert_eq!(code, "22P02", "{n}"),
        }
    }
    assert_eq!(seen.writes().len(), 3333);
}

#[tokio::test]
async fn what_came_before_an_error_stays_and_is_told() {
    let (server, seen) = serve(rule).await;
    let body = "[{\"a\":1},\n{\"a\":\"bad\"},\n{\"a\":},\n{\"a\":4}]";
    let (status, told) = post_text(server.rows(), "application/json", body).await;
    assert_eq!(status, 400);
    assert_eq!(told["error"]["line"], 3);
    assert_eq!(told["error"]["line_column"], 6);
    assert_eq!(told["error"]["code"], "22P02");
    assert_eq!(told["results"].as_array().unwrap().len(), 2);
    assert_eq!((&told["rows"], &told["errors"]), (&json!(1), &json!(1)));
    assert_eq!(seen.writes().len(), 2);
    let (status, told) = post_text(server.rows(), "application/x-ndjson", "{\"a\":}\nmore\n").await;
    assert_eq!((status, &told["error"]["line"]), (400, &json!(1)));
    assert!(told.get("results").is_none(), "nothing was written: {told}");
}

#[tokio::test]
async fn a_hundred_thousand_rows_come_back_in_order() {
    let (server, seen) = serve(|write| match write.row()[0] {
        Value::Int(n) => Ok(WriteDone::rows(u64::try_from(n % 3).unwrap())),
        _ => Err(unique()),
    })
    .await;
    let body: String = (0..100_000)
        .map(|n| format!("{{\"n\":{n},\"text\":\"row {n}\"}}\n"))
        .collect();
    let (status, told) = post_text(server.rows(), "application/x-ndjson", body).await;
    assert_eq!(status, 200);
    let results = told["results"].as_array().unwrap();
    assert_eq!(results.len(), 100_000);
    assert!(results.iter().enumerate().all(|(n, r)| r["rows"] == n % 3));
    let writes = seen.writes();
    assert!(
        writes
            .iter()
            .enumerate()
            .all(|(n, w)| w.row()[0] == Value::Int(i64::try_from(n).unwrap()))
    );
    let submissions = seen.submissions();
    assert!(submissions.iter().all(|s| s.len() <= 1000));
}

/// A station that sends a line now and then has each of them written when it comes, not when the
/// body ends.
#[tokio::test]
async fn a_trickle_is_not_held_back() {
    let (server, mut arrivals) = start(crate::support::config(), MIB).await;
    let mut raw = server.connect().await;
    raw.send("POST /v1/tables/t/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n").await;
    for n in 0..3 {
        raw.send("8\r\n{\"a\":1}\n\r\n").await;
        let submission = arrivals.recv().await.unwrap();
        assert_eq!(submission.units.len(), 1, "row {n}");
        crate::support::answer(submission, &mut good);
    }
    raw.send("0\r\n\r\n").await;
    let told = loop_until_end(&mut raw).await;
    assert!(told.contains(r#""rows":3,"errors":0}"#), "{told}");
}

async fn loop_until_end(raw: &mut crate::support::Raw) -> String {
    use tokio::io::AsyncReadExt;
    let mut text = String::new();
    while !text.ends_with("0\r\n\r\n") {
        text.push(char::from(raw.0.read_u8().await.unwrap()));
    }
    text
}

/// While the lane works on some portions, the next ones are read; but only so many.
#[tokio::test]
async fn a_bounded_number_of_portions_is_under_way() {
    let (server, mut arrivals) = start(crate::support::config(), 64 * MIB).await;
    let body = "{\"a\":1}\n".repeat(50_000);
    let answer = tokio::spawn(post_text(
        server.rows() + "?results=none",
        "application/x-ndjson",
        body,
    ));
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(arrivals.recv().await.unwrap());
    }
    // Only when one of them is answered, another comes.
    for _ in 0..5 {
        tokio::task::yield_now().await;
        assert!(arrivals.try_recv().is_err());
    }
    for submission in held {
        crate::support::answer(submission, &mut good);
    }
    tokio::spawn(async move {
        while let Some(submission) = arrivals.recv().await {
            crate::support::answer(submission, &mut good);
        }
    });
    let (status, told) = answer.await.unwrap();
    assert_eq!((status, told), (200, json!({"rows": 50_000, "errors": 0})));
}

#[tokio::test]
async fn many_errors_keep_their_codes() {
    let (server, _) = serve(|_| Err(unique())).await;
    let body = "{\"a\":1}\n".repeat(100_010);
    let (status, told) = post_text(
        server.rows() + "?results=errors",
        "application/x-ndjson",
        body,
    )
    .await;
    assert_eq!(status, 207);
    let results = told["results"].as_array().unwrap();
    assert_eq!(results.len(), 100_010);
    assert_eq!(results[99_999]["error"]["constraint"], "t_pkey");
    assert_eq!(results[100_005]["error"]["code"], "23505");
    assert!(results[100_005]["error"].get("constraint").is_none());
    assert_eq!(results[100_005]["index"], 100_005);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The chunks that the body comes in make no difference.
    #[test]
    fn the_same_rows_whatever_the_chunks(sizes in prop::collection::vec(1usize..40, 1..30)) {
        runtime().block_on(async {
            let (server, seen) = serve(rule).await;
            for (kind, body) in BODIES {
                let mut chunks = Vec::new();
                let mut rest = body.as_bytes();
                for size in sizes.iter().cycle() {
                    if rest.is_empty() {
                        break;
                    }
                    let (chunk, behind) = rest.split_at((*size).min(rest.len()));
                    chunks.push(chunk.to_vec());
                    rest = behind;
                }
                let request = client().post(server.rows()).header("content-type", kind).body(chunked(chunks));
                let (status, told) = send(request).await;
                assert_eq!((status, &told["rows"], &told["errors"]), (207, &json!(2), &json!(1)));
                assert_eq!(told["results"].as_array().unwrap().len(), 4);
            }
            assert_eq!(seen.writes().len(), 12);
        });
    }
}

/// A body that comes in these chunks, whatever their number.
fn chunked(chunks: Vec<Vec<u8>>) -> reqwest::Body {
    reqwest::Body::wrap(Chunks(chunks.into()))
}

struct Chunks(VecDeque<Vec<u8>>);

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(
            self.0
                .pop_front()
                .map(|chunk| Ok(Frame::data(chunk.into()))),
        )
    }
}
