//! Requests over HTTP.

use crate::collector::{
    Collector, Manner, PARENT, SPAN, TRACE, attribute, hex, links_to, sorted, value,
};
use crate::gateway::{Gateway, traces};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_a_part_of_its_clients_trace_and_its_batch_links_to_it() {
    let collector = Collector::start(Manner::Takes).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 0.0)).await;
    let row = r#"{"id": 1, "name": "hidden-value"}"#;
    assert_eq!(gateway.insert("readings", row, Some(PARENT)).await, 201);
    gateway.stop().await;
    let (requests, batches) = sorted(collector.spans());
    let ([request], [batch]) = (&requests[..], &batches[..]) else {
        panic!("{requests:?} {batches:?}")
    };
    assert_eq!(
        (hex(&request.trace_id), hex(&request.parent_span_id)),
        (TRACE.into(), SPAN.into())
    );
    assert_eq!(request.name, "POST /v1/tables/{table}/rows");
    for (name, expected) in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/tables/{table}/rows"),
        ("http.response.status_code", "201"),
        ("db.operation.name", "insert"),
        ("db.collection.name", "readings"),
        ("windrow.rows", "1"),
        ("windrow.batches", "1"),
        ("windrow.rung", "solo"),
    ] {
        assert_eq!(
            attribute(request, name).as_deref(),
            Some(expected),
            "{name}"
        );
    }
    assert!(attribute(request, "windrow.queue_seconds").is_some());
    assert!(attribute(request, "windrow.database_seconds").is_some());
    assert_eq!((request.kind, request.status.is_none()), (2, true));
    assert!(request.start_time_unix_nano <= batch.start_time_unix_nano);
    assert!(request.end_time_unix_nano >= batch.end_time_unix_nano);
    // A batch is nobody's child.
    assert!(batch.parent_span_id.is_empty() && hex(&batch.trace_id) != TRACE);
    assert!(links_to(batch, request) && links_to(request, batch));
    for (name, expected) in [
        ("db.system.name", "sqlite"),
        ("db.operation.batch.size", "1"),
        ("windrow.lane", "default"),
        ("windrow.units", "1"),
        ("windrow.rows_solo", "1"),
    ] {
        assert_eq!(attribute(batch, name).as_deref(), Some(expected), "{name}");
    }
    assert!(!collector.has_seen("hidden-value"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_sampled_tells_nothing() {
    let collector = Collector::start(Manner::Takes).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 1.0)).await;
    let unsampled = PARENT.replace("-01", "-00");
    assert_eq!(
        gateway.insert("t", r#"{"id": 1}"#, Some(&unsampled)).await,
        201
    );
    // What is asked of the gateway itself is not traced either.
    gateway.get("/healthz").send().await.unwrap();
    gateway
        .get("/metrics")
        .header("traceparent", PARENT)
        .send()
        .await
        .unwrap();
    gateway.stop().await;
    let silent = Gateway::embedded(&traces(&collector.endpoint, 0.0)).await;
    assert_eq!(silent.insert("t", r#"{"id": 1}"#, None).await, 201);
    silent.stop().await;
    let off = Gateway::embedded("").await;
    assert_eq!(off.insert("t", r#"{"id": 1}"#, Some(PARENT)).await, 201);
    for outcome in ["delivered", "dropped", "lost"] {
        let name = format!("windrow_trace_spans_total{{outcome=\"{outcome}\"}}");
        assert_eq!(off.metric(&name).await, "0");
    }
    off.stop().await;
    assert!(collector.heads().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_caller_a_request_is_a_trace_of_its_own() {
    let collector = Collector::start(Manner::Takes).await;
    let toml = format!(
        "{}service_name = 'edge'\nheaders = 'api-key=abc%20d'\n",
        traces(&format!("{}/otlp", collector.endpoint), 1.0)
    );
    let gateway = Gateway::embedded(&toml).await;
    // What is no traceparent counts as none.
    for (id, caller) in [(1, None), (2, Some("00-zz-1-01"))] {
        let row = format!("{{\"id\": {id}}}");
        assert_eq!(gateway.insert("t", &row, caller).await, 201);
    }
    gateway.stop().await;
    let (requests, _) = sorted(collector.spans());
    assert_eq!(requests.len(), 2);
    assert_ne!(requests[0].trace_id, requests[1].trace_id);
    assert!(requests.iter().all(|span| span.parent_span_id.is_empty()));
    let head = collector.heads().remove(0).to_ascii_lowercase();
    assert!(
        head.starts_with("post /otlp/v1/traces http/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("content-type: application/x-protobuf\r\n"),
        "{head}"
    );
    assert!(head.contains("api-key: abc d\r\n"), "{head}");
    let sent = collector.requests_read().remove(0).resource_spans.remove(0);
    let resource = sent.resource.unwrap().attributes;
    assert_eq!(value(&resource, "service.name").as_deref(), Some("edge"));
    assert_eq!(
        value(&resource, "service.version").as_deref(),
        Some(env!("CARGO_PKG_VERSION"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_refuses_has_its_code() {
    let collector = Collector::start(Manner::Takes).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 1.0)).await;
    let body = "{\"id\": 1}\n{\"id\": 1}\n{\"id\": 2}\n";
    let request = gateway.post("/v1/tables/t/rows", "application/x-ndjson", body);
    assert_eq!(request.send().await.unwrap().status(), 207);
    let unreadable = gateway.insert("t", "{\"id\": hidden-value", None).await;
    assert_eq!(unreadable, 400);
    gateway.stop().await;
    let (requests, _) = sorted(collector.spans());
    let [refused, unread] = &requests[..] else {
        panic!("{requests:?}")
    };
    for (name, expected) in [
        ("windrow.rows", "3"),
        ("windrow.failed", "1"),
        ("db.response.status_code", "23505"),
        ("http.response.status_code", "207"),
    ] {
        assert_eq!(
            attribute(refused, name).as_deref(),
            Some(expected),
            "{name}"
        );
    }
    assert_eq!(refused.status.as_ref().map(|status| status.code), Some(2));
    assert_eq!(attribute(unread, "windrow.rows").as_deref(), Some("0"));
    assert_eq!(
        attribute(unread, "db.response.status_code").as_deref(),
        Some("22P02")
    );
    assert!(!collector.has_seen("hidden-value"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_links_to_all_its_requests() {
    let collector = Collector::start(Manner::Takes).await;
    // A batch leaves once all of them are in it.
    let toml = format!(
        "{}[limits]\nbatch_rows = 20\nmax_wait = '50s'\n",
        traces(&collector.endpoint, 1.0)
    );
    let gateway = Gateway::embedded(&toml).await;
    let rows: Vec<String> = (1..=20).map(|id| format!("{{\"id\": {id}}}")).collect();
    let inserts = rows.iter().map(|row| gateway.insert("t", row, None));
    let told = futures_util::future::join_all(inserts).await;
    assert!(told.iter().all(|status| *status == 201), "{told:?}");
    gateway.stop().await;
    let (requests, batches) = sorted(collector.spans());
    let [batch] = &batches[..] else {
        panic!("{batches:?}")
    };
    assert_eq!((requests.len(), batch.links.len()), (20, 20));
    for request in &requests {
        assert!(links_to(batch, request) && links_to(request, batch));
    }
    assert_eq!(attribute(batch, "windrow.units").as_deref(), Some("20"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_does_several_things_has_one_span() {
    let collector = Collector::start(Manner::Takes).await;
    let gateway = Gateway::embedded(&traces(&collector.endpoint, 1.0)).await;
    let body = r#"{"operations": [
        {"op": "insert", "table": "t", "row": {"id": 1}},
        {"op": "insert", "table": "u", "row": {"id": 1}}]}"#;
    let request = gateway.post("/v1/batch", "application/json", body);
    assert_eq!(request.send().await.unwrap().status(), 200);
    gateway.stop().await;
    let (requests, _) = sorted(collector.spans());
    let [request] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(request.name, "POST /v1/batch");
    assert_eq!(attribute(request, "windrow.rows").as_deref(), Some("2"));
    assert_eq!(attribute(request, "db.collection.name"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_by_the_spool_or_under_a_key_has_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(Manner::Takes).await;
    let toml = format!(
        "{}[database]\ncreate_tables = true\n[spool]\ndirectory = '{}'\n",
        traces(&collector.endpoint, 1.0),
        folder.path().join("spool").display()
    );
    let url = format!("sqlite:{}", folder.path().join("test.db").display());
    let gateway = Gateway::start(&url, &toml).await;
    let post = |query: &str| {
        let path = format!("/v1/tables/t/rows{query}");
        gateway.post(&path, "application/json", r#"{"id": 1}"#)
    };
    let spooled = post("?ack=spool").send().await.unwrap();
    assert_eq!(spooled.status(), 202);
    let keyed = post("?on_conflict=ignore").header("idempotency-key", "hidden-value");
    assert_eq!(keyed.send().await.unwrap().status(), 200);
    gateway.stop().await;
    let (requests, batches) = sorted(collector.spans());
    assert_eq!((requests.len(), batches.len()), (2, 0));
    for request in &requests {
        assert_eq!(attribute(request, "windrow.rows").as_deref(), Some("1"));
        assert_eq!(
            attribute(request, "db.collection.name").as_deref(),
            Some("t")
        );
        assert_eq!(attribute(request, "windrow.batches"), None);
        assert!(request.links.is_empty() && request.status.is_none());
    }
    assert!(!collector.has_seen("hidden-value"));
}
