//! Requests within a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use windrow_core::{Fault, Op, Returned, Secret, Value, Write, WriteDone};
use windrow_http::{HttpConfig, Tokens};

use crate::support::{
    MIB, Server, answer, client, config, eventually, good, post, serve, serve_with, start, unique,
};

/// What came back, with its parts taken apart.
#[derive(Debug)]
struct Reply {
    status: u16,
    errors: Option<String>,
    content_type: String,
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    head: String,
    status: u16,
    headers: String,
    body: String,
}

impl Part {
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {:?}", self.body))
    }
}

async fn send(server: &Server, path: &str, kind: &str, body: impl Into<reqwest::Body>) -> Reply {
    let request = client().post(server.url(path)).header("content-type", kind);
    read(request.body(body)).await
}

async fn read(request: reqwest::RequestBuilder) -> Reply {
    let response = request.send().await.unwrap();
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    let (errors, content_type) = (header("x-arango-errors"), header("content-type").unwrap());
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let boundary = content_type
        .split("boundary=")
        .nth(1)
        .map(|b| b.trim_matches('"'));
    let parts = boundary.map_or_else(Vec::new, |boundary| parts(&text, boundary));
    Reply {
        status,
        errors,
        content_type,
        text,
        parts,
    }
}

fn parts(text: &str, boundary: &str) -> Vec<Part> {
    let close = format!("--{boundary}--\r\n");
    let inner = text
        .strip_suffix(&close)
        .unwrap_or_else(|| panic!("not closed: {text:?}"));
    let line = format!("--{boundary}\r\n");
    let mut pieces = inner.split(&line);
    assert_eq!(pieces.next(), Some(""), "the first line is a boundary");
    let part = |piece: &str| {
        let piece = piece.strip_suffix("\r\n").unwrap();
        let (head, response) = piece.split_once("\r\n\r\n").unwrap();
        let (headers, body) = response.split_once("\r\n\r\n").unwrap();
        let length = headers
            .lines()
            .find_map(|l| l.strip_prefix("content-length: "));
        if let Some(length) = length {
            assert_eq!(body.len(), length.parse::<usize>().unwrap(), "{response:?}");
        }
        Part {
            head: head.to_owned(),
            status: headers[9..12].parse().unwrap(),
            headers: headers.to_owned(),
            body: body.to_owned(),
        }
    };
    pieces.map(part).collect()
}

const ARANGO: &str = "multipart/form-data; boundary=XXXsubpartXXX";

/// Requests as parts of ArangoDB's envelope.
fn envelope(requests: &[String]) -> String {
    let parts = requests.iter().enumerate().map(|(n, request)| {
        format!("--XXXsubpartXXX\r\nContent-type: application/x-arango-batchpart\r\nContent-Id: {n}\r\n\r\n{request}\r\n")
    });
    parts.collect::<String>() + "--XXXsubpartXXX--\r\n"
}

fn insert(n: usize) -> String {
    format!("POST /v1/tables/t/rows HTTP/1.1\r\n\r\n{{\"a\":{n}}}")
}

fn first(write: &Write) -> &Value {
    &write.row()[0]
}

#[tokio::test]
async fn the_example_of_arangodbs_manual() {
    let (server, seen) = serve(|write| {
        assert_eq!(&*write.shape.table.table, "xyz");
        Ok(WriteDone::rows(1))
    })
    .await;
    let body = "--XXXsubpartXXX\nContent-type: application/x-arango-batchpart\nContent-Id: 1\n\n\
        POST /_api/document?collection=xyz HTTP/1.1\n\n{\"a\":1,\"b\":2,\"c\":3}\n--XXXsubpartXXX\n\
        Content-type: application/x-arango-batchpart\n\n\
        POST /_api/document?collection=xyz\n\n{\"a\":1,\"b\":2,\"c\":3,\"d\":4}\n--XXXsubpartXXX--";
    for path in ["/_api/batch", "/_db/mine/_api/batch", "/v1/batch"] {
        let reply = send(&server, path, ARANGO, body).await;
        assert_eq!((reply.status, reply.errors), (200, None));
        assert_eq!(reply.content_type, ARANGO);
        let [one, two] = &reply.parts[..] else {
            panic!("{}", reply.text)
        };
        assert_eq!(
            one.head,
            "Content-Type: application/x-arango-batchpart\r\nContent-Id: 1"
        );
        assert_eq!(two.head, "Content-Type: application/x-arango-batchpart");
        assert!(one.headers.starts_with("HTTP/1.1 201 Created\r\n"));
        assert!(one.json()["_id"].as_str().unwrap().starts_with("xyz/"));
    }
    assert_eq!(seen.writes().len(), 6);
    let put = client()
        .put(server.url("/_api/batch"))
        .header("content-type", ARANGO);
    assert_eq!(read(put.body(body)).await.status, 200);
}

/// python-arango 5.4 writes the methods of its parts in lower case, and lines of headers as
/// dictionaries give them.
#[tokio::test]
async fn methods_of_parts_are_read_in_either_case() {
    let (server, seen) = serve(good).await;
    let requests = [
        "post /_api/document/things?returnNew=0&silent=0 HTTP/1.1\r\ncontent-type: application/json\r\n\
         charset: utf-8\r\n\r\n{\"_key\":\"a\"}",
        "patch /_api/document/things/a HTTP/1.1\r\nContent-Type: Application/JSON; Charset=\"UTF-8\"\r\n\r\n{\"n\":2}",
        "Delete /_api/document/things/a http/1.1\r\n\r\n",
        "post /v1/tables/t/rows\r\n\r\n{\"a\":1}",
        "put /v1/tables/t/rows HTTP/1.1\r\n\r\n",
    ]
    .map(str::to_owned);
    let reply = send(&server, "/_api/batch", ARANGO, envelope(&requests)).await;
    let statuses: Vec<u16> = reply.parts.iter().map(|p| p.status).collect();
    assert_eq!(statuses, [201, 201, 200, 201, 405], "{}", reply.text);
    assert_eq!(seen.writes().len(), 4);
}

#[tokio::test]
async fn mixed_results_in_the_order_of_the_requests() {
    let (server, _) = serve(|write| match (write.shape.op, first(write)) {
        (Op::Insert, Value::Int(2)) => Err(unique()),
        (Op::Get, _) => Ok(WriteDone::returning(
            1,
            Returned {
                columns: Arc::from([Arc::from("a")]),
                rows: vec![Box::new([Value::Int(7)])],
            },
        )),
        _ => Ok(WriteDone::rows(1)),
    })
    .await;
    let requests = [
        insert(1),
        insert(2),
        "GET /v1/tables/t/rows/1 HTTP/1.1\r\n\r\n".to_owned(),
        "HEAD /v1/tables/t/rows/1 HTTP/1.1".to_owned(),
        "GET /nowhere HTTP/1.1".to_owned(),
        "not a request".to_owned(),
        "POST /_api/batch HTTP/1.1\r\n\r\n".to_owned(),
        "PUT /v1/tables/t/rows HTTP/1.1\r\n\r\n{}".to_owned(),
        "GET /_api/collection HTTP/1.1".to_owned(),
        "POST /v1/tables/t/rows HTTP/1.1\r\ncontent-type: application/x-ndjson\r\n\r\n{\"a\":1}\n{\"a\":2}\n".to_owned(),
        "POST /v1/batch HTTP/1.1\r\n\r\n{\"operations\":[{\"op\":\"delete\",\"table\":\"t\",\"key\":1}]}".to_owned(),
        "GET http://example.org/healthz HTTP/1.1".to_owned(),
        "POST /v1/tables/t/rows HTTP/1.1\r\nidempotency-key: 1\r\n\r\n{}".to_owned(),
    ];
    let reply = send(&server, "/_api/batch", ARANGO, envelope(&requests)).await;
    let statuses: Vec<u16> = reply.parts.iter().map(|p| p.status).collect();
    assert_eq!(
        statuses,
        [
            201, 409, 200, 200, 404, 400, 400, 405, 404, 207, 200, 200, 501
        ],
        "{}",
        reply.text
    );
    assert_eq!(reply.errors.as_deref(), Some("7"));
    for (n, part) in reply.parts.iter().enumerate() {
        assert!(part.head.ends_with(&format!("Content-Id: {n}")), "{part:?}");
    }
    assert_eq!(reply.parts[1].json()["error"]["code"], "23505");
    assert_eq!(reply.parts[2].json(), json!({"a": 7}));
    assert_eq!(reply.parts[3].body, "");
    assert!(
        reply.parts[4].json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("/_api/batch")
    );
    assert!(
        reply.parts[6]
            .body
            .contains("an envelope within an envelope")
    );
    assert_eq!(reply.parts[8].json()["errorNum"], 404);
    assert_eq!(reply.parts[9].json()["errors"], 1);
}

#[tokio::test]
async fn google_and_odata() {
    let (server, _) = serve(good).await;
    let body = "\r\n--batch_a+b/c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nMIME-Version: 1.0\r\n\
        Content-ID: <item1:12930812@barnyard.example.com>\r\n\r\nGET /v1/lanes\r\n\r\n\
        --batch_a+b/c\r\nContent-Type: application/http\r\nContent-ID: 2\r\n\r\n\
        POST tables/t/rows\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"a\":\r\n 1}\r\n\r\n\
        --batch_a+b/c\r\nContent-Type: multipart/mixed; boundary=cs\r\n\r\n--cs\r\n\r\n--cs--\r\n\
        --batch_a+b/c--\r\n";
    let kind = "multipart/mixed; boundary=\"batch_a+b/c\"";
    let reply = send(&server, "/v1/batch", kind, body).await;
    assert_eq!(reply.content_type, kind);
    assert_eq!(
        reply.parts[0].head,
        "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
         Content-Id: <response-item1:12930812@barnyard.example.com>"
    );
    assert!(reply.parts[1].head.ends_with("\r\nContent-Id: 2"));
    let statuses: Vec<u16> = reply.parts.iter().map(|p| p.status).collect();
    assert_eq!(statuses, [200, 201, 501], "{}", reply.text);
    assert!(reply.parts[2].body.contains("change set"));
}

#[tokio::test]
async fn a_malformed_envelope_has_done_nothing() {
    let (server, seen) = serve(good).await;
    let whole = envelope(&[insert(1), insert(2)]);
    let cut = &whole[..whole.len() - 30];
    for (kind, body, status, message) in [
        (
            ARANGO,
            cut,
            400,
            "part 2 of the envelope, line 13: the closing boundary line is missing",
        ),
        (
            ARANGO,
            "--XXXsubpartXXX--",
            400,
            "the envelope has no parts",
        ),
        (
            ARANGO,
            "",
            400,
            "no boundary line (--XXXsubpartXXX) was found",
        ),
        ("multipart/form-data", "{}", 400, "names no boundary"),
        (
            "multipart/form-data; boundary=\"x",
            &whole,
            400,
            "not closed",
        ),
        ("application/json", "{}", 415, "multipart/form-data"),
        (
            "multipart/related; boundary=x",
            "{}",
            415,
            "application/http",
        ),
    ] {
        let reply = send(&server, "/_api/batch", kind, body.to_owned()).await;
        assert_eq!(
            (reply.status, reply.errors),
            (status, None),
            "{}",
            reply.text
        );
        let told: serde_json::Value = serde_json::from_str(&reply.text).unwrap();
        assert_eq!(
            (&told["error"], &told["code"]),
            (&json!(true), &json!(status))
        );
        let text = told["errorMessage"].as_str().unwrap();
        assert!(text.contains(message), "{text}");
    }
    assert!(seen.writes().is_empty());
    // The body alone may say what parts it.
    let peeked = send(&server, "/_api/batch", "multipart/form-data", whole).await;
    assert_eq!((peeked.status, peeked.parts.len()), (200, 2));
    let get = client()
        .get(server.url("/_api/batch"))
        .send()
        .await
        .unwrap();
    assert_eq!(
        (get.status().as_u16(), &get.headers()["allow"]),
        (405, &"POST, PUT".parse().unwrap())
    );
}

#[tokio::test]
async fn the_limits_are_named() {
    let config = HttpConfig {
        max_body: 3000,
        max_row: 400,
        max_atomic_rows: 3,
        ..config()
    };
    let (server, seen) = serve_with(config, good).await;
    let many = envelope(&[insert(1), insert(2), insert(3), insert(4)]);
    let reply = send(&server, "/_api/batch", ARANGO, many).await;
    assert_eq!(reply.status, 413);
    assert!(
        reply.text.contains("http.max_atomic_rows"),
        "{}",
        reply.text
    );
    let large = format!(
        "POST /v1/tables/t/rows HTTP/1.1\r\n\r\n{{\"a\":\"{}\"}}",
        "x".repeat(3000)
    );
    let reply = send(&server, "/_api/batch", ARANGO, envelope(&[large])).await;
    assert_eq!(reply.status, 413);
    assert!(reply.text.contains("http.max_body"), "{}", reply.text);
    assert!(seen.writes().is_empty());
    let row = format!(
        "POST /v1/tables/t/rows HTTP/1.1\r\n\r\n{{\"a\":\"{}\"}}",
        "x".repeat(500)
    );
    let reply = send(&server, "/_api/batch", ARANGO, envelope(&[row, insert(1)])).await;
    assert_eq!((reply.parts[0].status, reply.parts[1].status), (413, 201));
    assert!(
        reply.parts[0].body.contains("http.max_row"),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn the_token_is_asked_for_once() {
    let config = HttpConfig {
        tokens: Tokens {
            all: Some(Secret::from("secret")),
            named: Vec::new(),
        },
        ..config()
    };
    let (server, seen) = serve_with(config, good).await;
    let refused = send(&server, "/_api/batch", ARANGO, envelope(&[insert(1)])).await;
    assert_eq!(refused.status, 401);
    assert!(
        refused.text.contains("\"errorNum\":401"),
        "{}",
        refused.text
    );
    assert!(seen.writes().is_empty());
    let request = client()
        .post(server.url("/_api/batch"))
        .bearer_auth("secret")
        .header("content-type", ARANGO)
        .body(envelope(&[insert(1)]));
    let reply = read(request).await;
    assert_eq!((reply.status, reply.parts[0].status), (200, 201));
}

/// Parts begin in their order, each once the one before it is with the lane, and wait for nobody's
/// answer.
#[tokio::test]
async fn parts_are_with_the_lane_in_order_before_any_is_answered() {
    let (server, mut arrivals) = start(config(), 64 * MIB).await;
    let requests: Vec<String> = (0..800).map(insert).collect();
    let sent = tokio::spawn(read(
        client()
            .post(server.url("/_api/batch"))
            .header("content-type", ARANGO)
            .body(envelope(&requests)),
    ));
    let mut held = Vec::new();
    while held.len() < requests.len() {
        held.push(arrivals.recv().await.unwrap());
    }
    let order: Vec<Value> = held
        .iter()
        .map(|s| first(&s.units[0].writes()[0]).clone())
        .collect();
    let wanted: Vec<Value> = (0..800).map(Value::Int).collect();
    assert_eq!(order, wanted);
    assert!(held.iter().all(|s| s.source == held[0].source));
    // Answered backwards, told forwards.
    for submission in held.into_iter().rev() {
        answer(submission, &mut |write: &Write| match first(write) {
            Value::Int(n) if n % 100 == 5 => Err(unique()),
            _ => Ok(WriteDone::rows(1)),
        });
    }
    let reply = sent.await.unwrap();
    assert_eq!(reply.errors.as_deref(), Some("8"));
    for (n, part) in reply.parts.iter().enumerate() {
        assert_eq!(part.status, if n % 100 == 5 { 409 } else { 201 });
    }
    eventually("memory is given back", || server.budget.held() == 0).await;
}

/// More parts than may be under way at once, over a slow lane and a full channel.
#[tokio::test]
async fn thousands_of_parts() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let (server, _) = serve(move |write| {
        let place = counted.fetch_add(1, Ordering::Relaxed);
        assert_eq!(*first(write), Value::Int(i64::try_from(place).unwrap()));
        Ok(WriteDone::rows(1))
    })
    .await;
    let requests: Vec<String> = (0..5000).map(insert).collect();
    let reply = send(&server, "/_api/batch", ARANGO, envelope(&requests)).await;
    assert_eq!((reply.parts.len(), reply.errors), (5000, None));
    assert!(reply.parts.iter().all(|part| part.status == 201));
    assert_eq!(count.load(Ordering::Relaxed), 5000);
    let text = server.metrics();
    for line in [
        "windrow_http_requests_total{route=\"/_api/batch\",method=\"POST\",status=\"2xx\"} 1",
        "windrow_http_requests_total{route=\"/v1/tables/{table}/rows\",method=\"POST\",status=\"2xx\"} 5000",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_parts_out() {
    let (server, mut arrivals) = start(config(), 64 * MIB).await;
    let mut raw = server.connect().await;
    let body = envelope(&[insert(1), insert(2)]);
    raw.send(post("/_api/batch", ARANGO, &body)).await;
    let (one, two) = (
        arrivals.recv().await.unwrap(),
        arrivals.recv().await.unwrap(),
    );
    drop(raw);
    eventually("both are abandoned", || {
        one.reply.is_abandoned() && two.reply.is_abandoned()
    })
    .await;
}

/// The envelope in pieces of any size gives what it gives whole.
#[tokio::test]
async fn however_the_body_is_cut() {
    let (server, _) = serve(good).await;
    let body = envelope(&[insert(1), "GET /nowhere HTTP/1.1".to_owned(), insert(3)]);
    let whole = send(&server, "/_api/batch", ARANGO, body.clone()).await;
    for size in [1, 2, 3, 7, 16, 40, 100] {
        let mut raw = server.connect().await;
        let head = format!(
            "POST /_api/batch HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {ARANGO}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        raw.send(head).await;
        for piece in body.as_bytes().chunks(size) {
            raw.send(format!("{:x}\r\n", piece.len())).await;
            raw.send(piece).await;
            raw.send("\r\n").await;
        }
        raw.send("0\r\n\r\n").await;
        let text = raw.rest().await;
        let (_, told) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(told, whole.text, "pieces of {size}");
    }
}

#[tokio::test]
async fn memory_is_bounded_and_named() {
    let (server, mut arrivals) = start(config(), MIB).await;
    tokio::spawn(async move {
        while let Some(submission) = arrivals.recv().await {
            answer(submission, &mut |write: &Write| {
                let returned = Returned {
                    columns: Arc::from([Arc::from("a")]),
                    rows: vec![Box::new([Value::text("x".repeat(100_000))])],
                };
                Ok::<_, Fault>(match write.shape.op {
                    Op::Get | Op::Insert => WriteDone::returning(1, returned),
                    _ => WriteDone::rows(1),
                })
            });
        }
    });
    // Answers of a hundred kilobytes each: some have room, the others say that they have none.
    let requests: Vec<String> = (0..30)
        .map(|n| match n % 2 {
            0 => format!("GET /v1/tables/t/rows/{n} HTTP/1.1"),
            _ => format!("POST /v1/tables/t/rows?returning=a HTTP/1.1\r\n\r\n{{\"a\":{n}}}"),
        })
        .collect();
    let reply = send(&server, "/_api/batch", ARANGO, envelope(&requests)).await;
    let (reads, writes): (Vec<_>, Vec<_>) = reply
        .parts
        .iter()
        .enumerate()
        .partition(|(n, _)| n % 2 == 0);
    assert!(reads.iter().any(|(_, p)| p.status == 200));
    assert!(
        reads
            .iter()
            .any(|(_, p)| p.status == 429 && p.body.contains("limits.memory"))
    );
    assert!(
        writes.iter().all(|(_, p)| p.status == 201),
        "what was written is told"
    );
    assert!(writes.iter().any(|(_, p)| p.body.contains("\"omitted\"")));
    // An envelope that cannot be held at all is refused before anything is executed.
    let row = "x".repeat(2 * MIB);
    let large = envelope(&[format!("POST /v1/tables/t/rows\r\n\r\n{{\"a\":\"{row}\"}}")]);
    let reply = tokio::time::timeout(
        Duration::from_secs(30),
        send(&server, "/_api/batch", ARANGO, large),
    );
    let reply = reply.await.unwrap();
    assert_eq!(reply.status, 413, "{}", reply.text);
    assert!(reply.text.contains("limits.memory"), "{}", reply.text);
}
