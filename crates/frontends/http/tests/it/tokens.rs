//! Tokens, and what each of them allows.

use std::sync::Arc;

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use windrow_core::TableName;
use windrow_http::{HttpConfig, Right, Rights, Tokens};

use crate::support::{client, config, good, send, serve_with};

/// One token that may do everything, one for inserts into `t`, one that reads, one for metrics.
fn with_tokens() -> HttpConfig {
    let named = |token: &str, rights: &[Right], tables: &[&str]| {
        let tables = tables.iter().map(|name| TableName::parse(name).unwrap());
        let rights = Rights::new(token, rights, tables.collect());
        (token.to_owned().into(), Arc::new(rights))
    };
    HttpConfig {
        tokens: Tokens {
            all: Some("s3cret".to_owned().into()),
            named: vec![
                named("device", &[Right::Insert], &["t"]),
                named("reader", &[Right::Read], &[]),
                named("watcher", &[Right::Metrics], &[]),
            ],
        },
        ..config()
    }
}

#[tokio::test]
async fn without_a_token_only_health_is_answered() {
    let (server, seen) = serve_with(with_tokens(), good).await;
    assert_eq!(send(client().get(server.url("/healthz"))).await.0, 200);
    for path in ["/", "/metrics", "/v1/lanes", "/nowhere", "/readyz"] {
        let response = client().get(server.url(path)).send().await.unwrap();
        assert_eq!(response.status(), 401, "{path}");
        assert!(
            response.headers()["www-authenticate"]
                .to_str()
                .unwrap()
                .starts_with("Bearer")
        );
        assert!(!response.text().await.unwrap().contains("s3cret"));
    }
    let post = |token: &str| {
        send(
            client()
                .post(server.rows())
                .bearer_auth(token)
                .body("{\"a\":1}"),
        )
    };
    assert_eq!(post("wrong!").await.0, 401);
    assert!(seen.writes().is_empty());
    assert_eq!(post("s3cret").await.0, 201);
}

#[tokio::test]
async fn a_token_allows_what_its_rights_name() {
    let (server, seen) = serve_with(with_tokens(), good).await;
    let status = async |token: &str, request: RequestBuilder| {
        let answer = request.bearer_auth(token).send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        assert_eq!(text.contains("[http.tokens."), status == 403, "{text}");
        status
    };
    let on = |method: Method, path: &str, body: &str| {
        let request = client().request(method, server.url(path));
        let request = request.header("content-type", "application/json");
        request.body(body.to_owned())
    };
    let insert = |path: &str| on(Method::POST, path, "{\"a\":1}");
    assert_eq!(status("device", insert("/v1/tables/t/rows")).await, 201);
    for path in [
        "/v1/tables/u/rows",
        "/v1/tables/s.t/rows",
        "/v1/tables/t/rows?on_conflict=update",
        "/v1/tables/t/rows?on_conflict=ignore&returning=a",
        "/v1/tables/t/rows?returning=a",
    ] {
        assert_eq!(status("device", insert(path)).await, 403, "{path}");
    }
    for (method, path) in [
        (Method::GET, "/v1/tables/t/rows/1"),
        (Method::DELETE, "/v1/tables/t/rows/1"),
        (Method::GET, "/metrics"),
        (Method::GET, "/v1/lanes"),
    ] {
        assert_eq!(status("device", on(method, path, "")).await, 403, "{path}");
    }
    let change = on(Method::PATCH, "/v1/tables/t/rows/1", "{\"a\":1}");
    assert_eq!(status("device", change).await, 403);
    assert_eq!(status("reader", insert("/v1/tables/t/rows")).await, 403);
    assert_eq!(seen.writes().len(), 1);
    let read = on(Method::GET, "/v1/tables/t/rows/1", "");
    assert_ne!(status("reader", read).await, 403);
    for path in ["/metrics", "/v1/lanes", "/readyz"] {
        let request = on(Method::GET, path, "");
        assert_eq!(status("watcher", request).await, 200, "{path}");
    }
}

#[tokio::test]
async fn each_operation_of_a_batch_is_checked() {
    let (server, seen) = serve_with(with_tokens(), good).await;
    let batch = json!({"operations": [
        {"op": "insert", "table": "t", "row": {"a": 1}},
        {"op": "insert", "table": "u", "row": {"a": 1}},
        {"op": "delete", "table": "t", "key": 1},
    ]});
    let request = client().post(server.url("/v1/batch")).bearer_auth("device");
    let (status, answer) = send(request.json(&batch)).await;
    assert_eq!((status, &answer["errors"]), (207, &json!(2)), "{answer}");
    let wrote = seen.writes();
    assert_eq!(wrote.len(), 1);
    assert_eq!(&*wrote[0].shape.table.table, "t");
}

#[tokio::test]
async fn parts_of_an_envelope_have_the_rights_of_its_token() {
    let (server, seen) = serve_with(with_tokens(), good).await;
    let part =
        |request: &str| format!("--X\r\nContent-Type: application/http\r\n\r\n{request}\r\n");
    let body = [
        part("POST /v1/tables/t/rows HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{\"a\":1}"),
        part("GET /metrics HTTP/1.1\r\n\r\n"),
        part("DELETE /v1/tables/t/rows/1 HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\r\n"),
        "--X--\r\n".to_owned(),
    ];
    let request = client().post(server.url("/v1/batch")).bearer_auth("device");
    let request = request.header("content-type", "multipart/mixed; boundary=X");
    let answer = request.body(body.concat()).send().await.unwrap();
    let text = answer.text().await.unwrap();
    assert_eq!(text.matches("HTTP/1.1 201").count(), 1, "{text}");
    assert_eq!(text.matches("HTTP/1.1 403").count(), 2, "{text}");
    assert_eq!(seen.writes().len(), 1);
}
