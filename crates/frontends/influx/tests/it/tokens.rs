//! Tokens in InfluxDB's forms, and what each of them allows.

use std::sync::Arc;

use serde_json::json;
use windrow_core::TableName;
use windrow_http::{HttpConfig, Right, Rights, Tokens};

use crate::support::{config, good, serve_with};
use crate::writes::{json_of, plain};

fn with_tokens() -> HttpConfig {
    let tables = vec![TableName::bare("m")];
    let rights = Rights::new("meters", &[Right::Insert], tables);
    HttpConfig {
        tokens: Tokens {
            all: Some("s3cret".to_owned().into()),
            named: vec![("device".to_owned().into(), Arc::new(rights))],
        },
        ..config()
    }
}

#[tokio::test]
async fn a_token_is_shown_in_any_form_of_influxdb() {
    let (server, seen) = serve_with(with_tokens(), good).await;
    let post = |path: &str| plain().post(server.url(path)).body("m a=1");
    for request in [
        post("/api/v2/write").header("authorization", "Token s3cret"),
        post("/write").basic_auth("anyone", Some("s3cret")),
        post("/write?u=anyone&p=s3cret"),
        post("/write").bearer_auth("s3cret"),
        post("/write?u=anyone&p=device"),
    ] {
        assert_eq!(request.send().await.unwrap().status(), 204);
    }
    assert_eq!(seen.writes().len(), 5);
    for request in [
        post("/write"),
        post("/write?p=wrong"),
        post("/write?p=s3cret").bearer_auth("wrong"),
        post("/write").header("authorization", "Token "),
        plain().post(server.url("/query?q=CREATE+DATABASE+x")),
    ] {
        let (status, told) = json_of(request.send().await.unwrap()).await;
        assert_eq!((status, &told["code"]), (401, &json!("unauthorized")));
    }
    // Only these paths know these forms.
    let other = plain().get(server.url("/v1/lanes?p=s3cret")).send().await;
    assert_eq!(other.unwrap().status(), 401);
    for path in ["/ping", "/health"] {
        let open = plain().get(server.url(path)).send().await.unwrap();
        assert!(open.status().is_success(), "{path}");
    }
    assert_eq!(seen.writes().len(), 5);
}

#[tokio::test]
async fn a_token_writes_the_tables_that_it_may_write() {
    let (server, seen) = serve_with(with_tokens(), good).await;
    let post = |body: &'static str| {
        let request = plain().post(server.url("/write")).body(body);
        request.header("authorization", "Token device").send()
    };
    let (status, told) = json_of(post("n a=1\nm a=1\n").await.unwrap()).await;
    assert_eq!(status, 400);
    let message = told["error"].as_str().unwrap();
    assert!(message.starts_with("partial write: line 1: ") && message.ends_with("dropped=1"));
    assert_eq!(seen.one().table().to_string(), "m");
    assert_eq!(post("n a=1").await.unwrap().status(), 403);
}
