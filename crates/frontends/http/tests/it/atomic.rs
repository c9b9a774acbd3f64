//! All rows or none.

use serde_json::json;
use windrow_core::{Fault, FaultClass, Value};
use windrow_http::HttpConfig;

use crate::support::{MIB, config, good, post_text, serve, serve_with, start, unique};

#[tokio::test]
async fn all_rows_are_one_unit() {
    let (server, seen) = serve(good).await;
    let (status, told) = post_text(server.rows() + "?atomic=true", "text/csv", "a\n1\n2\n3").await;
    assert_eq!(status, 200);
    assert_eq!(
        told,
        json!({"results": [{"rows": 1}, {"rows": 1}, {"rows": 1}], "rows": 3, "errors": 0})
    );
    let units = seen.units();
    assert_eq!(units.len(), 1);
    assert_eq!(units[0].len(), 3);
    assert_eq!(server.budget.held(), 0);
}

#[tokio::test]
async fn the_first_failing_row_is_named() {
    let (server, _) = serve(|write| match write.row()[0] {
        Value::Int(2) => Err(Fault::new(FaultClass::NotNull, "23502", "no value")),
        Value::Int(9) => Err(Fault::unavailable("away")),
        _ => good(write),
    })
    .await;
    let url = server.rows() + "?atomic=true";
    let (status, told) = post_text(
        url.clone(),
        "application/json",
        "[{\"a\":1},{\"a\":2},{\"a\":3}]",
    )
    .await;
    assert_eq!(status, 409);
    assert_eq!(
        told,
        json!({"error": {"code": "23502", "message": "no value"}, "index": 1})
    );
    let (status, _) = post_text(url, "application/json", "[{\"a\":9}]").await;
    assert_eq!(status, 503);
}

#[tokio::test]
async fn nothing_is_handed_over_if_a_row_cannot_be_read() {
    let (server, seen) = serve(good).await;
    let url = server.rows() + "?atomic=true";
    let (status, told) = post_text(url, "application/x-ndjson", "{\"a\":1}\n{\"a\"}\n").await;
    assert_eq!((status, &told["error"]["line"]), (400, &json!(2)));
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn the_limits_are_named() {
    let config = HttpConfig {
        max_atomic_rows: 10,
        max_body: 1000,
        ..config()
    };
    let (server, seen) = serve_with(config, |_| Err(unique())).await;
    let url = server.rows() + "?atomic=true";
    let (status, told) = post_text(
        url.clone(),
        "application/x-ndjson",
        "{\"a\":1}\n".repeat(11),
    )
    .await;
    assert_eq!(status, 413);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("10 rows"),
        "{told}"
    );
    let (status, told) = post_text(url, "text/csv", format!("a\n{}", "x".repeat(1000))).await;
    assert_eq!(status, 413);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("http.max_body"),
        "{told}"
    );
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn a_full_budget_is_told_at_once() {
    let (server, _arrivals) = start(config(), MIB).await;
    let body = "{\"a\":1}\n".repeat(40_000);
    let url = server.rows() + "?atomic=true";
    let (status, _) = post_text(url, "application/x-ndjson", body).await;
    assert!(matches!(status, 413 | 429), "{status}");
    assert_eq!(server.budget.held(), 0);
}
