//! One row by its key.

use std::sync::Arc;

use serde_json::json;
use windrow_core::{Key, Op, Returned, Returning, Value, WriteDone};

use crate::support::{client, columns, good, send, serve};

fn found(id: i64) -> WriteDone {
    WriteDone::returning(
        1,
        Returned {
            columns: Arc::from([Arc::from("id"), Arc::from("blob")]),
            rows: vec![Box::new([Value::Int(id), Value::from(vec![1u8, 2, 3])])],
        },
    )
}

#[tokio::test]
async fn update_has_columns_and_key() {
    let (server, seen) = serve(good).await;
    let url = server.url("/v1/tables/t/rows/5,a%2Cb");
    let (status, told) = send(client().patch(url).json(&json!({"x": 1, "y": null}))).await;
    assert_eq!((status, told), (200, json!({"rows": 1})));
    let write = seen.one();
    assert_eq!(write.shape.op, Op::Update);
    assert_eq!(columns(&write), ["x", "y"]);
    assert_eq!(write.values(), [Value::Int(1), Value::Null]);
    assert_eq!(write.key_values(), [Value::text("5"), Value::text("a,b")]);
    assert_eq!(write.shape.key, Key::Primary);
    let (status, _) = send(client().patch(server.url("/v1/tables/t/rows/1")).body("{}")).await;
    assert_eq!(status, 400);
}

/// What a text in a path means may depend on its column; JSON says it by itself, and the key of a
/// document is a text.
#[tokio::test]
async fn only_a_path_spells_its_key() {
    let (server, seen) = serve(good).await;
    let row = server.url("/v1/tables/t/rows/1");
    send(client().get(&row)).await;
    send(client().delete(&row)).await;
    send(client().patch(&row).body("{\"x\":1}")).await;
    let operations = json!([
        {"op": "get", "table": "t", "key": 1}, {"op": "delete", "table": "t", "key": {"id": "1"}},
        {"op": "update", "table": "t", "key": "1", "row": {"x": 1}}, {"op": "insert", "table": "t", "row": {"id": 1}}
    ]);
    let body = json!({ "operations": operations });
    send(client().post(server.url("/v1/batch")).json(&body)).await;
    let spelled: Vec<bool> = seen.writes().iter().map(|w| w.shape.is_spelled()).collect();
    let expected = [true, true, true, false, false, false, false];
    assert_eq!(spelled, expected);
}

#[tokio::test]
async fn delete_may_find_nothing() {
    let (server, seen) = serve(|_| Ok(WriteDone::rows(0))).await;
    let url = server.url("/v1/tables/t/rows/7?key=code");
    let (status, told) = send(client().delete(url)).await;
    assert_eq!((status, told), (200, json!({"rows": 0})));
    let write = seen.one();
    assert_eq!(write.shape.op, Op::Delete);
    assert_eq!(write.shape.key, Key::Columns(["code".into()].into()));
    assert_eq!(*write.row(), [Value::text("7")]);
    let (status, told) = send(client().delete(server.url("/v1/tables/t/rows/7,8?key=code"))).await;
    assert_eq!(status, 400);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("2 values"),
        "{told}"
    );
}

#[tokio::test]
async fn a_read_gives_the_row_itself() {
    let (server, seen) = serve(|write| match &write.row()[0] {
        Value::Text(t) if &**t == "1" => Ok(found(1)),
        _ => Ok(WriteDone::rows(0)),
    })
    .await;
    let url = server.url("/v1/tables/t/rows/1");
    assert_eq!(
        send(client().get(&url)).await,
        (200, json!({"id": 1, "blob": "AQID"}))
    );
    assert_eq!(seen.one().shape.op, Op::Get);
    assert_eq!(seen.one().shape.returning, Returning::All);
    let (status, told) = send(client().get(server.url("/v1/tables/t/rows/2?returning=id"))).await;
    assert_eq!((status, &told["error"]["code"]), (404, &json!("02000")));
    assert_eq!(
        seen.writes()[1].shape.returning,
        Returning::Columns(["id".into()].into())
    );
    let head = client().head(&url).send().await.unwrap();
    assert_eq!(
        (head.status().as_u16(), head.text().await.unwrap()),
        (200, String::new())
    );
}

#[tokio::test]
async fn returning_works_for_all_of_them() {
    let (server, _) = serve(|_| Ok(found(3))).await;
    let told = json!({"rows": 1, "returned": {"id": 3, "blob": "AQID"}});
    let url = server.url("/v1/tables/t/rows/3?returning=*");
    assert_eq!(send(client().delete(&url)).await, (200, told.clone()));
    assert_eq!(
        send(client().patch(&url).body("{\"a\":1}")).await,
        (200, told)
    );
}
