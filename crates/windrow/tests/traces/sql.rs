//! Writes of SQL clients.

use crate::collector::{Collector, Manner, PARENT, SPAN, TRACE, attribute, hex, links_to, sorted};
use crate::gateway::{Gateway, traces};
use crate::postgres::{database, direct, through};

/// Another caller's span.
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_or_a_comment_names_the_clients_span() {
    let database = database().await;
    let past = direct(&database).await;
    past.batch_execute("create table t (id integer primary key, name text)")
        .await
        .unwrap();
    let collector = Collector::start(Manner::Takes).await;
    let toml = format!(
        "{}[pg]\nlisten = '127.0.0.1:0'\n",
        traces(&collector.endpoint, 0.0)
    );
    let gateway = Gateway::start(database.url(), &toml).await;
    let client = through(&gateway, &database).await;
    // Nobody asks for a trace.
    client
        .batch_execute("insert into t values (0, 'a')")
        .await
        .unwrap();
    client
        .batch_execute(&format!("set windrow.traceparent = '{PARENT}'"))
        .await
        .unwrap();
    client
        .execute("insert into t values ($1, 'hidden-value')", &[&1])
        .await
        .unwrap();
    // A comment counts more, and the same statement has another each time.
    for (id, caller) in [(2, OTHER), (3, &*OTHER.replace("-01", "-00"))] {
        let text = format!("insert into t values ({id}, 'b') /*traceparent='{caller}'*/");
        client.batch_execute(&text).await.unwrap();
    }
    let refused = client.batch_execute("insert into t values (1, 'c')").await;
    assert_eq!(refused.unwrap_err().code().unwrap().code(), "23505");
    client
        .batch_execute("reset windrow.traceparent")
        .await
        .unwrap();
    client
        .batch_execute("insert into t values (4, 'd')")
        .await
        .unwrap();
    let joinable = "windrow_pg_statements_total{way=\"joinable\"}";
    assert_eq!(gateway.metric(joinable).await, "6");
    drop(client);
    gateway.stop().await;

    let (requests, batches) = sorted(collector.spans());
    let [prepared, commented, refused] = &requests[..] else {
        panic!("{requests:?}")
    };
    for request in [prepared, refused] {
        let ids = (hex(&request.trace_id), hex(&request.parent_span_id));
        assert_eq!(ids, (TRACE.to_owned(), SPAN.to_owned()));
    }
    assert!(OTHER.contains(&hex(&commented.trace_id)));
    assert!(OTHER.contains(&hex(&commented.parent_span_id)));
    assert_eq!(prepared.name, "insert t");
    for (name, expected) in [
        ("db.operation.name", "insert"),
        ("db.collection.name", "t"),
        ("windrow.rows", "1"),
        ("windrow.batches", "1"),
    ] {
        assert_eq!(
            attribute(prepared, name).as_deref(),
            Some(expected),
            "{name}"
        );
    }
    assert!(attribute(prepared, "db.namespace").is_some());
    let code = attribute(refused, "db.response.status_code");
    assert_eq!(code.as_deref(), Some("23505"));
    assert_eq!(refused.status.as_ref().map(|status| status.code), Some(2));
    for request in &requests {
        let mut batches = batches.iter();
        assert!(batches.any(|batch| links_to(batch, request) && links_to(request, batch)));
    }
    assert!(!collector.has_seen("hidden-value"));
}
