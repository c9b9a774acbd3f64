//! One row in, one answer out.

use std::sync::Arc;

use serde_json::json;
use windrow_core::{
    Fault, FaultClass, Key, OnConflict, Op, Returned, Returning, TableName, Value, WriteDone,
};

use crate::support::{client, columns, good, post_text, send, serve, unique};

#[tokio::test]
async fn one_object_is_one_row() {
    let (server, seen) = serve(good).await;
    let body = json!({"id": 1, "name": "x", "n": 1.5, "ok": true, "none": null, "list": [1]});
    let response = client()
        .post(server.rows())
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert!(response.headers().contains_key("date"));
    assert_eq!(response.text().await.unwrap(), r#"{"rows":1}"#);
    let write = seen.one();
    assert_eq!(
        (write.shape.op, &write.shape.table),
        (Op::Insert, &TableName::bare("t"))
    );
    // serde_json's map is sorted.
    assert_eq!(columns(&write), ["id", "list", "n", "name", "none", "ok"]);
    assert_eq!(
        *write.row(),
        [
            Value::Int(1),
            Value::Json("[1]".into()),
            Value::Number("1.5".into()),
            Value::text("x"),
            Value::Null,
            Value::Bool(true)
        ]
    );
}

/// A page of any origin can send these without being asked for leave.
#[tokio::test]
async fn what_a_form_can_send_is_refused() {
    let (server, seen) = serve(good).await;
    let form = "application/x-www-form-urlencoded";
    for kind in [form, "text/plain", "multipart/form-data; boundary=x"] {
        let (status, told) = post_text(server.rows(), kind, "{\"a\":1}").await;
        assert_eq!(status, 415, "{kind}");
        let message = told["error"]["message"].as_str().unwrap();
        assert!(message.contains("application/json"), "{message}");
        assert!(kind != form || message.contains("curl --json"), "{message}");
    }
    let unsaid = reqwest::Client::new().post(server.rows()).body("{\"a\":2}");
    assert_eq!(send(unsaid).await.0, 415);
    assert!(seen.writes().is_empty());
}

/// Without a token, whoever asks must call the server by a name that is known, and be no page of
/// another origin.
#[tokio::test]
async fn web_pages_are_kept_out() {
    let (server, seen) = serve(good).await;
    let envelope = "--x\r\n\r\nPOST /v1/tables/t/rows\r\n\r\n{\"a\":1}\r\n--x--\r\n";
    for (name, value) in [
        ("host", "evil.example"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let rows = client().post(server.rows()).header(name, value);
        assert_eq!(send(rows.body("{\"a\":1}")).await.0, 403, "{name}: {value}");
        let row = client().get(server.url("/v1/tables/t/rows/1"));
        assert_eq!(
            send(row.header(name, value)).await.0,
            403,
            "{name}: {value}"
        );
        let parts = client()
            .post(server.url("/v1/batch"))
            .header("content-type", "multipart/form-data; boundary=x")
            .header(name, value);
        assert_eq!(send(parts.body(envelope)).await.0, 403, "{name}: {value}");
        let metrics = client().get(server.url("/metrics")).header(name, value);
        assert_eq!(send(metrics).await.0, 403, "{name}: {value}");
    }
    assert!(seen.writes().is_empty());
    let own = client()
        .post(server.rows())
        .header("sec-fetch-site", "same-origin");
    assert_eq!(send(own.body("{\"a\":1}")).await.0, 201);
}

#[tokio::test]
async fn tables_of_the_database_itself_are_not_served() {
    let (server, seen) = serve(good).await;
    for table in [
        "pg_shadow",
        "pg_catalog.pg_authid",
        "information_schema.tables",
        "sqlite_master",
        "_users",
    ] {
        let row = client().get(server.url(&format!("/v1/tables/{table}/rows/1")));
        assert_eq!(send(row).await.0, 403, "{table}");
        let batch =
            format!("{{\"operations\":[{{\"op\":\"get\",\"table\":\"{table}\",\"key\":1}}]}}");
        let (_, told) = send(client().post(server.url("/v1/batch")).body(batch)).await;
        assert_eq!(
            told["results"][0]["error"]["code"], "42501",
            "{table}: {told}"
        );
    }
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn parameters_reach_the_shape() {
    let (server, seen) = serve(good).await;
    let url =
        server.url("/v1/tables/s.t%22%3B%20drop/rows?on_conflict=update&key=a,b&returning=id,name");
    assert_eq!(post_text(url, "application/json", "{\"a\":1}").await.0, 201);
    let shape = seen.one().shape;
    assert_eq!(shape.table.schema.as_deref(), Some("s"));
    assert_eq!(&*shape.table.table, "t\"; drop");
    assert_eq!(shape.on_conflict, OnConflict::Update);
    assert_eq!(shape.key, Key::Columns(["a".into(), "b".into()].into()));
    assert_eq!(
        shape.returning,
        Returning::Columns(["id".into(), "name".into()].into())
    );
}

#[tokio::test]
async fn equal_requests_share_one_shape() {
    let (server, seen) = serve(good).await;
    for body in [
        "{\"a\":1,\"b\":2}",
        "{\"a\":3,\"b\":4}",
        "{\"b\":3,\"a\":4}",
        "{\"a\":1,\"b\":2}",
    ] {
        assert_eq!(
            post_text(server.rows(), "application/json", body).await.0,
            201
        );
    }
    let writes = seen.writes();
    assert!(Arc::ptr_eq(&writes[0].shape, &writes[1].shape));
    assert!(Arc::ptr_eq(&writes[0].shape, &writes[3].shape));
    assert_eq!(columns(&writes[2]), ["b", "a"]);
}

#[tokio::test]
async fn generated_values_come_back() {
    let (server, _) = serve(|_| {
        Ok(WriteDone::returning(
            1,
            Returned {
                columns: Arc::from([Arc::from("id"), Arc::from("at\"")]),
                rows: vec![Box::new([
                    Value::Number("18446744073709551616".into()),
                    Value::text("x\n"),
                ])],
            },
        ))
    })
    .await;
    let response = client()
        .post(server.rows() + "?returning=*")
        .body("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(
        response.text().await.unwrap(),
        r#"{"rows":1,"returned":{"id":18446744073709551616,"at\"":"x\n"}}"#
    );
}

#[tokio::test]
async fn a_row_that_was_left_out_is_no_creation() {
    let (server, _) = serve(|_| Ok(WriteDone::rows(0))).await;
    let url = server.rows() + "?on_conflict=ignore";
    assert_eq!(
        post_text(url, "application/json", "{\"a\":1}").await,
        (200, json!({"rows": 0}))
    );
}

#[tokio::test]
async fn an_error_is_told_whole() {
    let (server, _) = serve(|_| Err(unique())).await;
    let (status, told) = post_text(server.rows(), "application/json", "{\"a\":1}").await;
    assert_eq!(status, 409);
    assert_eq!(
        told,
        json!({"error": {"code": "23505", "message": "the key is there already",
            "detail": "Key (id)=(1) already exists.", "constraint": "t_pkey"}})
    );
}

#[tokio::test]
async fn each_class_has_its_status() {
    let statuses = [
        (FaultClass::Invalid, 400),
        (FaultClass::Value, 422),
        (FaultClass::Unique, 409),
        (FaultClass::ForeignKey, 409),
        (FaultClass::NotNull, 422),
        (FaultClass::Check, 422),
        (FaultClass::NoTable, 404),
        (FaultClass::NoColumn, 422),
        (FaultClass::Denied, 403),
        (FaultClass::TooLarge, 413),
        (FaultClass::Overloaded, 429),
        (FaultClass::Unavailable, 503),
        (FaultClass::Conflict, 503),
        (FaultClass::Unknown, 504),
        (FaultClass::Cancelled, 503),
        (FaultClass::Unsupported, 501),
        (FaultClass::Other, 500),
    ];
    assert_eq!(statuses.len(), FaultClass::ALL.len());
    let (server, _) = serve(move |write| {
        let Value::Int(at) = write.row()[0] else {
            panic!("a number was sent")
        };
        let (class, _) = statuses[usize::try_from(at).unwrap()];
        Err(Fault::new(class, "XX000", "as asked"))
    })
    .await;
    for (at, (class, status)) in statuses.iter().enumerate() {
        let body = json!({ "at": at }).to_string();
        let response = client()
            .post(server.rows())
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status().as_u16(), *status, "{class:?}");
        let retry = response.headers().contains_key("retry-after");
        assert_eq!(retry, matches!(*status, 429 | 503), "{class:?}");
    }
}
