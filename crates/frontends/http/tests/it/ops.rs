//! What operators ask for.

use serde_json::json;
use windrow_core::Fault;
use windrow_http::{Http, HttpConfig, Tokens};

use crate::support::{self, client, config, good, post_text, send, serve};

#[tokio::test]
async fn health_and_readiness() {
    let (server, _) = serve(good).await;
    assert_eq!(send(client().get(server.url("/healthz"))).await.0, 200);
    assert_eq!(
        send(client().get(server.url("/readyz"))).await,
        (200, json!({"ready": true}))
    );
    *server.ready.lock().unwrap() = Err(Fault::unavailable("the database is away"));
    let response = client().get(server.url("/readyz")).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    assert!(response.text().await.unwrap().contains("is away"));
    assert_eq!(send(client().get(server.url("/healthz"))).await.0, 200);
}

#[tokio::test]
async fn the_description_lanes_and_index_are_served() {
    let (server, _) = serve(good).await;
    let (status, doc) = send(client().get(server.url("/openapi.json"))).await;
    assert_eq!((status, &doc["openapi"]), (200, &json!("3.1.0")));
    assert_eq!(
        send(client().get(server.url("/v1/lanes"))).await,
        (200, json!({"lanes": []}))
    );
    let index = client().get(server.url("/")).send().await.unwrap();
    assert_eq!(index.headers()["content-type"], "text/plain; charset=utf-8");
    assert!(index.text().await.unwrap().contains("/openapi.json"));
    let head = client()
        .head(server.url("/openapi.json"))
        .send()
        .await
        .unwrap();
    assert_eq!(head.status(), 200);
    assert!(
        head.headers()["content-length"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            > 1000
    );
}

#[tokio::test]
async fn requests_are_counted() {
    let (server, _) = serve(good).await;
    post_text(server.rows(), "application/json", "{\"a\":1}").await;
    post_text(
        server.rows(),
        "application/x-ndjson",
        "{\"a\":1}\n{\"a\":2}",
    )
    .await;
    post_text(server.rows(), "application/json", "nonsense").await;
    let response = client().get(server.url("/metrics")).send().await.unwrap();
    let kind = response.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        kind.starts_with("application/openmetrics-text; version=1.0.0"),
        "{kind}"
    );
    let text = response.text().await.unwrap();
    for line in [
        "windrow_http_requests_total{route=\"/v1/tables/{table}/rows\",method=\"POST\",status=\"2xx\"} 2",
        "windrow_http_requests_total{route=\"/v1/tables/{table}/rows\",method=\"POST\",status=\"4xx\"} 1",
        "windrow_http_request_seconds_count{route=\"/v1/tables/{table}/rows\",method=\"POST\"} 3",
        "windrow_http_rows_total{ack=\"commit\"} 3",
        "# TYPE windrow_http_connections gauge",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("windrow_http_received_bytes_total 0\n"));
}

#[tokio::test]
async fn an_open_address_wants_a_token_or_a_word() {
    let bind = |config: HttpConfig| async {
        let (intake, _arrivals) =
            windrow_core::Intake::channel(windrow_core::Budget::new(1 << 20), 1);
        let ready = std::sync::Arc::new(std::sync::Mutex::new(Ok(())));
        let (services, _) = support::services(intake, ready, &[]);
        Http::bind(config, services, Vec::new()).await
    };
    let open = || HttpConfig {
        listen: "0.0.0.0:0".parse().unwrap(),
        ..config()
    };
    let error = bind(open()).await.unwrap_err().to_string();
    assert!(
        error.contains("http.token") && error.contains("http.allow_open"),
        "{error}"
    );
    assert!(
        bind(HttpConfig {
            allow_open: true,
            ..open()
        })
        .await
        .is_ok()
    );
    assert!(
        bind(HttpConfig {
            tokens: Tokens {
                all: Some("x".to_owned().into()),
                named: Vec::new(),
            },
            ..open()
        })
        .await
        .is_ok()
    );
}
