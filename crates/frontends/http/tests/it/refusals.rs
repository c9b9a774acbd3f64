//! What is refused, and in which words.

use serde_json::json;

use crate::support::{client, config, good, post_text, send, serve, serve_with};
use windrow_http::HttpConfig;

#[tokio::test]
async fn an_unknown_path_is_told_the_routes() {
    let (server, _) = serve(good).await;
    for path in [
        "/nowhere",
        "/v1/tablets",
        "/v1/tables/t",
        "/v1/tables/t/rows/1/2",
    ] {
        let (status, told) = send(client().get(server.url(path))).await;
        assert_eq!(status, 404, "{path}");
        let message = told["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("POST /v1/tables/{table}/rows, PATCH")
                && message.contains("GET /readyz"),
            "{message}"
        );
    }
    let response = client().put(server.rows()).send().await.unwrap();
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET, HEAD, POST");
    let response = client().post(server.url("/metrics")).send().await.unwrap();
    assert_eq!(response.headers()["allow"], "GET, HEAD");
}

#[tokio::test]
async fn a_database_that_cannot_keep_keys_refuses_them() {
    let (server, seen) = serve(good).await;
    let request = client()
        .post(server.rows())
        .header("idempotency-key", "1")
        .body("{\"a\":1}");
    let (status, told) = send(request).await;
    assert_eq!(status, 501);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no transactions")
    );
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn the_wrong_kind_of_body() {
    let (server, _) = serve(good).await;
    for kind in [
        "text/plain",
        "application/xml",
        "application/json; charset=utf-16",
    ] {
        let (status, _) = post_text(server.rows(), kind, "{\"a\":1}").await;
        assert_eq!(status, 415, "{kind}");
    }
    let (_, told) = post_text(server.rows(), "text/plain", "x").await;
    let message = told["error"]["message"].as_str().unwrap();
    for kind in ["application/json", "application/x-ndjson", "text/csv"] {
        assert!(message.contains(kind), "{message}");
    }
    let gzip = client()
        .post(server.rows())
        .header("content-encoding", "br")
        .body("x");
    let (status, told) = send(gzip).await;
    assert_eq!(status, 415);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("identity")
    );
    let csv = client()
        .patch(server.url("/v1/tables/t/rows/1"))
        .header("content-type", "text/csv");
    assert_eq!(send(csv.body("a\n1")).await.0, 415);
}

#[tokio::test]
async fn what_is_not_json_is_told_line_and_column() {
    let (server, seen) = serve(good).await;
    for (body, line, column) in [
        ("{\"a\":1,\n \"b\" 2}", 2, 6),
        ("nonsense", 1, 2),
        ("{\"a\":1", 1, 6),
        ("{\"a\":1}}", 1, 8),
        ("{\"a\":1,\"a\":2}", 1, 13),
        ("\"text\"", 1, 6),
        ("", 0, 0),
        ("  \n ", 0, 0),
        ("[{\"a\":1},5]", 1, 10),
    ] {
        let (status, told) = post_text(server.rows(), "application/json", body).await;
        assert_eq!(status, 400, "{body}: {told}");
        let (at, column_at) = (&told["error"]["line"], &told["error"]["line_column"]);
        if line > 0 {
            assert_eq!(
                (at, column_at),
                (&json!(line), &json!(column)),
                "{body}: {told}"
            );
        }
    }
    // Only the element before the bad one of the array was a row.
    assert_eq!(seen.writes().len(), 1);
}

#[tokio::test]
async fn names_and_parameters_that_make_no_sense() {
    let (server, seen) = serve(good).await;
    let long = format!("/v1/tables/{}/rows", "x".repeat(300));
    for (path, part) in [
        ("/v1/tables/a.b.c/rows", "two parts"),
        ("/v1/tables/%00/rows", "NUL"),
        ("/v1/tables/%FF/rows", "UTF-8"),
        ("/v1/tables/%22a/rows", "not closed"),
        (&*long, "255"),
        ("/v1/tables/t/rows?colour=red", "known here: on_conflict"),
        ("/v1/tables/t/rows?atomic=maybe", "true or false"),
        ("/v1/tables/t/rows?returning=", "empty"),
    ] {
        let (status, told) = post_text(server.url(path), "application/json", "{\"a\":1}").await;
        assert_eq!(status, 400, "{path}");
        assert!(
            told["error"]["message"].as_str().unwrap().contains(part),
            "{path}: {told}"
        );
    }
    let (status, _) = send(client().get(server.url("/metrics?x=1"))).await;
    assert_eq!(status, 400);
    let (status, _) = post_text(server.rows(), "application/json", "{\"\":1}").await;
    assert_eq!(status, 400);
    assert!(seen.writes().is_empty());
    // Quotes and semicolons are names like any others.
    let odd = server.url("/v1/tables/x%22%3B%20drop%20table%20y%3B%20--/rows");
    let (status, _) = post_text(odd, "application/json", "{\"a\\\"; --\":1}").await;
    assert_eq!(status, 201);
}

#[tokio::test]
async fn limits_are_named() {
    let (server, seen) = serve_with(
        HttpConfig {
            max_row: 1000,
            ..config()
        },
        good,
    )
    .await;
    let long = "x".repeat(2000);
    for (kind, body) in [
        ("application/json", format!("{{\"a\":\"{long}\"}}")),
        ("application/json", format!("[{{\"a\":\"{long}\"}}]")),
        ("application/x-ndjson", format!("{{\"a\":\"{long}\"}}\n")),
        ("text/csv", format!("a\n{long}\n")),
    ] {
        let (status, told) = post_text(server.rows(), kind, body.clone()).await;
        assert_eq!(status, 413, "{kind}");
        let message = told["error"]["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains("http.max_row") && message.contains("1000"),
            "{message}"
        );
    }
    let columns: Vec<_> = (0..1601).map(|n| format!("\"c{n}\":1")).collect();
    let (server, _) = serve(good).await;
    let body = format!("{{{}}}", columns.join(","));
    let (status, told) = post_text(server.rows(), "application/json", body).await;
    assert_eq!(status, 400);
    assert!(told["error"]["message"].as_str().unwrap().contains("1600"));
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn a_thousand_levels_of_nesting() {
    let (server, seen) = serve(good).await;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
    for (kind, body) in [
        ("application/json", deep.clone()),
        ("application/json", format!("[{deep}]")),
        ("application/x-ndjson", deep.clone()),
    ] {
        let (status, told) = post_text(server.rows(), kind, body).await;
        assert_eq!(status, 400);
        assert!(
            told["error"]["message"]
                .as_str()
                .unwrap()
                .contains("128 levels"),
            "{told}"
        );
    }
    let body = format!("{{\"operations\":[{{\"op\":\"insert\",\"table\":\"t\",\"row\":{deep}}}]}}");
    let (status, told) = post_text(server.url("/v1/batch"), "application/json", body).await;
    assert_eq!((status, &told["errors"]), (207, &json!(1)));
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn a_value_of_ten_megabytes() {
    let (server, seen) = serve(good).await;
    let body = format!("{{\"a\":\"{}\"}}", "x".repeat(10_000_000));
    let (status, told) = post_text(server.rows(), "application/json", body).await;
    assert_eq!(status, 413);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("http.max_row")
    );
    let body = format!("{{\"a\":\"{}\"}}", "x".repeat(8_000_000));
    let (status, _) = post_text(server.rows(), "application/json", body).await;
    assert_eq!(status, 201);
    assert_eq!(seen.one().bytes() / 1000, 8000);
    assert_eq!(server.budget.held(), 0);
}
