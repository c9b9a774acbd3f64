//! Operations of any kind on any tables.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use windrow_core::{Key, OnConflict, Op, Returned, Returning, Value, WriteDone};
use windrow_http::HttpConfig;

use crate::support::{
    Server, client, columns, config, good, post_text, send, serve, serve_with, unique,
};

async fn post(server: &Server, body: &Json) -> (u16, Json) {
    send(client().post(server.url("/v1/batch")).json(body)).await
}

#[tokio::test]
async fn each_operation_is_a_unit_in_order() {
    let (server, seen) = serve(|write| match write.shape.op {
        Op::Get => Ok(WriteDone::returning(
            1,
            Returned {
                columns: Arc::from([Arc::from("id")]),
                rows: vec![Box::new([Value::Int(4)])],
            },
        )),
        Op::Delete => Err(unique()),
        _ => Ok(WriteDone::rows(1)),
    })
    .await;
    let (status, told) = post(
        &server,
        &json!({"operations": [
            {"id": "1", "op": "insert", "table": "a", "row": {"x": 1}},
            {"id": 2, "op": "upsert", "table": "s.b", "row": {"y": 2}, "key": ["y"], "returning": ["y"]},
            {"op": "update", "table": "a", "row": {"x": 3}, "key": {"k": 1}},
            {"id": "4", "op": "delete", "table": "a", "key": [1, "two"]},
            {"id": null, "op": "get", "table": "a", "key": 4},
            {"id": "6", "op": "insert", "table": "a", "row": {"x": 1}, "on_conflict": "ignore"},
        ]}),
    )
    .await;
    assert_eq!(status, 207);
    assert_eq!(told["errors"], 1);
    let results = told["results"].as_array().unwrap();
    assert_eq!(results[0], json!({"id": "1", "rows": 1}));
    assert_eq!(results[1], json!({"id": 2, "rows": 1}));
    assert_eq!(results[2], json!({"rows": 1}));
    assert_eq!(
        (&results[3]["id"], &results[3]["error"]["code"]),
        (&json!("4"), &json!("23505"))
    );
    assert_eq!(results[4], json!({"rows": 1, "row": {"id": 4}}));
    let units = seen.units();
    assert!(units.iter().all(|u| u.len() == 1));
    assert_eq!(seen.submissions().len(), 1, "one source, one order");
    let w = seen.writes();
    assert_eq!(
        (w[1].shape.on_conflict, &w[1].shape.key),
        (OnConflict::Update, &Key::Columns(["y".into()].into()))
    );
    assert_eq!(
        w[1].shape.returning,
        Returning::Columns(["y".into()].into())
    );
    assert_eq!(
        (w[2].values(), w[2].key_values()),
        (&[Value::Int(3)][..], &[Value::Int(1)][..])
    );
    assert_eq!(*w[3].row(), [Value::Int(1), Value::text("two")]);
    assert_eq!(w[4].shape.returning, Returning::All);
    assert_eq!(w[5].shape.on_conflict, OnConflict::Ignore);
    assert_eq!(columns(&w[5]), ["x"]);
}

#[tokio::test]
async fn a_malformed_operation_fails_alone() {
    let (server, seen) = serve(good).await;
    let malformed = [
        (
            json!({"op": "merge", "table": "t"}),
            "insert, upsert, update, delete or get",
        ),
        (json!({"op": "insert", "row": {}}), "table"),
        (json!({"op": "insert", "table": "t"}), "row is missing"),
        (
            json!({"op": "insert", "table": "t", "row": [1]}),
            "JSON object",
        ),
        (json!({"op": "delete", "table": "t"}), "needs a key"),
        (json!({"op": "delete", "table": "t", "key": {}}), "empty"),
        (
            json!({"op": "delete", "table": "t", "key": 1, "row": {}}),
            "takes no row",
        ),
        (
            json!({"op": "update", "table": "t", "key": 1, "row": {}}),
            "nothing to change",
        ),
        (
            json!({"op": "insert", "table": "t", "row": {}, "key": ["a"]}),
            "on_conflict",
        ),
        (
            json!({"op": "upsert", "table": "t", "row": {}, "key": {"a": 1}}),
            "array of names",
        ),
        (
            json!({"op": "insert", "table": "t", "row": {}, "colour": 1}),
            "colour",
        ),
        (
            json!({"op": "insert", "table": "a.b.c", "row": {}}),
            "two parts",
        ),
        (
            json!(5),
            "expected an operation: an object with op and table",
        ),
        (
            json!([]),
            "expected an operation: an object with op and table",
        ),
    ];
    // Two good ones beside each of them.
    let written = 2 * malformed.len();
    for (operation, part) in malformed {
        let mut operation = operation;
        if let Some(fields) = operation.as_object_mut() {
            fields.insert("id".into(), json!("me"));
        }
        let body = json!({"operations": [
            {"op": "insert", "table": "t", "row": {"a": 1}}, operation, {"op": "get", "table": "t", "key": 1}]});
        let (status, told) = post(&server, &body).await;
        assert_eq!((status, &told["errors"]), (207, &json!(1)), "{told}");
        let failed = &told["results"][1];
        if let Some(op @ ("update" | "delete")) = operation["op"].as_str() {
            let hint = failed["error"]["hint"].as_str().unwrap();
            let form = format!("{op} is written {{\"op\":\"{op}\",\"table\":\"t\",\"key\":1");
            assert!(hint.starts_with(&form), "{hint}");
        }
        assert!(
            failed["error"]["message"].as_str().unwrap().contains(part),
            "{failed} {part}"
        );
        assert_eq!(failed["id"].is_null(), !operation.is_object());
        assert_eq!(told["results"][2], json!({"rows": 1, "row": null}));
    }
    assert_eq!(seen.writes().len(), written);
}

#[tokio::test]
async fn a_malformed_envelope_fails_whole() {
    let (server, seen) = serve(good).await;
    for body in [
        "",
        "{",
        "[]",
        "{}",
        "{\"operations\":1}",
        "{\"operations\":[],\"x\":1}",
        "{\"operations\":[]} x",
    ] {
        let (status, told) = post_text(server.url("/v1/batch"), "application/json", body).await;
        assert_eq!(status, 400, "{body}: {told}");
        assert!(told["error"]["line"].is_u64(), "{told}");
    }
    let list = " [{\"op\":\"insert\"}]";
    let (_, told) = post_text(server.url("/v1/batch"), "application/json", list).await;
    let hint = told["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("{\"operations\": ["), "{told}");
    let empty = post(&server, &json!({"operations": []})).await;
    assert_eq!(empty, (200, json!({"results": [], "errors": 0})));
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn atomic_is_one_unit() {
    let (server, seen) = serve(|write| match write.row()[0] {
        Value::Int(2) => Err(unique()),
        _ => Ok(WriteDone::rows(1)),
    })
    .await;
    let operation = |n: i64| json!({"id": n, "op": "insert", "table": "t", "row": {"a": n}});
    let good = json!({"atomic": true, "operations": [operation(1), operation(3)]});
    let (status, told) = post(&server, &good).await;
    assert_eq!((status, &told["errors"]), (200, &json!(0)));
    assert_eq!(told["results"][1], json!({"id": 3, "rows": 1}));
    assert_eq!(seen.units().len(), 1);
    let bad = json!({"atomic": true, "operations": [operation(1), operation(2)]});
    let (status, told) = post(&server, &bad).await;
    assert_eq!((status, &told["index"]), (409, &json!(1)));
    let malformed =
        json!({"atomic": true, "operations": [operation(1), {"op": "x", "table": "t"}]});
    let (status, told) = post(&server, &malformed).await;
    assert_eq!((status, &told["index"]), (400, &json!(1)));
    assert_eq!(seen.units().len(), 2);
}

#[tokio::test]
async fn the_limits_are_named() {
    let config = HttpConfig {
        max_body: 500,
        max_atomic_rows: 3,
        ..config()
    };
    let (server, _) = serve_with(config, good).await;
    let get = json!({"op": "get", "table": "t", "key": 1});
    let (status, told) = post(&server, &json!({"operations": [get, get, get, get]})).await;
    assert_eq!(status, 413);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("http.max_atomic_rows")
    );
    let (status, told) = post(&server, &json!({"operations": [{"id": "x".repeat(600)}]})).await;
    assert_eq!(status, 413);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("http.max_body")
    );
}
