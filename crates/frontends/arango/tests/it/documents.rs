//! ArangoDB's document routes, over a lane that plays a table.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::{Value as Json, json};
use windrow_arango_api::ArangoApi;
use windrow_core::{
    Fault, FaultClass, Name, OnConflict, Op, Returned, Returning, Value, Write, WriteDone,
};

use crate::support::{
    MIB, Seen, Server, answer, client, config, good, post_text, send, serve, start_with, unique,
};

/// A table with the columns `_key`, `a` and `b`, and whatever is added to them.
#[derive(Clone)]
struct Table(Arc<Mutex<State>>);

struct State {
    columns: Vec<Name>,
    rows: BTreeMap<String, BTreeMap<Name, Value>>,
}

impl Table {
    fn new() -> Self {
        let columns = ["_key", "a", "b"].map(Name::from).into();
        let rows = BTreeMap::new();
        Self(Arc::new(Mutex::new(State { columns, rows })))
    }

    fn add_column(&self, name: &str, value: i64) {
        let state = &mut *self.0.lock().unwrap();
        state.columns.push(name.into());
        let rows = state.rows.values_mut();
        rows.for_each(|row| drop(row.insert(name.into(), Value::Int(value))));
    }
}

impl State {
    fn run(&mut self, write: &Write) -> Result<WriteDone, Fault> {
        let shape = &write.shape;
        if &*shape.table.table != "c" {
            return Err(Fault::new(FaultClass::NoTable, "42P01", "no such table"));
        }
        if let Some(name) = shape.columns.iter().find(|c| !self.columns.contains(c)) {
            let message = format!("no column {name}");
            return Err(Fault::new(FaultClass::NoColumn, "42703", message));
        }
        let given = || {
            shape
                .columns
                .iter()
                .cloned()
                .zip(write.values().iter().cloned())
        };
        let key = match shape.op {
            Op::Insert => {
                let place = shape.columns.iter().position(|c| &**c == "_key").unwrap();
                text(&write.row()[place])
            }
            _ => text(&write.key_values()[0]),
        };
        let before = self.rows.get(&key).cloned();
        let row = match (shape.op, shape.on_conflict, before) {
            (Op::Insert, OnConflict::Error, Some(_)) => return Err(unique()),
            (Op::Insert, OnConflict::Ignore, Some(_)) => None,
            (Op::Insert, _, Some(row)) | (Op::Update, _, Some(row)) => {
                Some(row.into_iter().chain(given()).collect())
            }
            (Op::Insert, _, None) => Some(given().collect()),
            (Op::Delete, _, before) => {
                self.rows.remove(&key);
                return Ok(self.done(before.as_ref(), &shape.returning));
            }
            (Op::Get, _, before) => before,
            (Op::Update, _, None) => None,
        };
        if let Some(row) = &row {
            self.rows.insert(key, row.clone());
        }
        Ok(self.done(row.as_ref(), &shape.returning))
    }

    fn done(&self, row: Option<&BTreeMap<Name, Value>>, returning: &Returning) -> WriteDone {
        let all = |row: &BTreeMap<Name, Value>| {
            let cell = |c| row.get(c).cloned().unwrap_or(Value::Null);
            self.columns.iter().map(cell).collect()
        };
        WriteDone {
            returned: (*returning == Returning::All).then(|| {
                Box::new(Returned {
                    columns: self.columns.clone().into(),
                    rows: row.map(all).into_iter().collect(),
                })
            }),
            ..WriteDone::rows(u64::from(row.is_some()))
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        other => panic!("a key is a text, not {other:?}"),
    }
}

async fn table() -> (Server, Seen, Table) {
    let table = Table::new();
    let rows = table.clone();
    let (server, seen) = serve(move |write| rows.0.lock().unwrap().run(write)).await;
    (server, seen, table)
}

async fn ask(server: &Server, method: &str, path: &str, body: Option<Json>) -> (u16, Json) {
    let method: Method = method.parse().unwrap();
    let request = client().request(method, server.url(path));
    send(match body {
        Some(body) => request.json(&body),
        None => request,
    })
    .await
}

#[tokio::test]
async fn one_document_from_birth_to_death() {
    let (server, _, _) = table().await;
    let response = client()
        .post(server.url("/_db/mine/_api/document/c?returnNew=true"))
        .json(
            &json!({"_key": "k 1".replace(' ', "-"), "_id": "ignored", "_rev": "ignored", "a": 1}),
        )
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(
        response.headers()["location"],
        "/_db/mine/_api/document/c/k-1"
    );
    let etag = response.headers()["etag"].to_str().unwrap().to_owned();
    let made: Json = response.json().await.unwrap();
    let rev = made["_rev"].as_str().unwrap();
    assert_eq!(etag, format!("\"{rev}\""));
    let document = json!({"_id": "c/k-1", "_key": "k-1", "_rev": rev, "a": 1, "b": null});
    assert_eq!(
        made,
        json!({"_id": "c/k-1", "_key": "k-1", "_rev": rev, "new": document})
    );
    let path = "/_api/document/c/k-1";
    assert_eq!(
        ask(&server, "GET", path, None).await,
        (200, document.clone())
    );

    let (status, told) = ask(&server, "PATCH", path, Some(json!({"b": [2]}))).await;
    assert_eq!((status, &told["_key"]), (201, &json!("k-1")));
    assert_ne!(told["_rev"], made["_rev"]);
    let (_, now) = ask(&server, "GET", path, None).await;
    assert_eq!(
        (&now["a"], &now["b"], &now["_rev"]),
        (&json!(1), &json!([2]), &told["_rev"])
    );

    let (status, _) = ask(&server, "PUT", path, Some(json!({"_key": "k-1", "b": 3}))).await;
    assert_eq!(status, 201);
    let (_, now) = ask(&server, "GET", path, None).await;
    assert_eq!((&now["a"], &now["b"]), (&Json::Null, &json!(3)));

    let (status, told) = ask(&server, "DELETE", &format!("{path}?returnOld=true"), None).await;
    assert_eq!((status, &told["old"]), (200, &now));
    for (method, body) in [
        ("GET", None),
        ("DELETE", None),
        ("PATCH", Some(json!({"a": 1}))),
        ("PUT", Some(json!({}))),
    ] {
        let (status, told) = ask(&server, method, path, body).await;
        assert_eq!(
            (status, &told["error"], &told["code"], &told["errorNum"]),
            (404, &json!(true), &json!(404), &json!(1202)),
            "{method}"
        );
    }
}

#[tokio::test]
async fn keys_are_made_where_none_is_given() {
    let (server, seen, _) = table().await;
    let (status, told) = ask(
        &server,
        "POST",
        "/_api/document?collection=c",
        Some(json!({"a": 1})),
    )
    .await;
    assert_eq!(status, 201);
    let key = told["_key"].as_str().unwrap();
    assert_eq!((key.len(), &key[14..15]), (36, "7"), "a UUID of version 7");
    assert_eq!(told["_id"], json!(format!("c/{key}")));
    assert_eq!(seen.one().row()[0], Value::text(key));
    for body in [
        json!({"_key": 5}),
        json!({"_key": ""}),
        json!({"_key": "a/b"}),
    ] {
        let (status, told) = ask(&server, "POST", "/_api/document/c", Some(body)).await;
        assert_eq!((status, &told["errorNum"]), (400, &json!(1221)));
    }
}

#[tokio::test]
async fn what_happens_where_the_key_is_taken() {
    let (server, _, _) = table().await;
    let post = async |query: &str, a: i64| {
        let path = format!("/_api/document/c?{query}");
        ask(&server, "POST", &path, Some(json!({"_key": "k", "a": a}))).await
    };
    assert_eq!(post("", 1).await.0, 201);
    let (status, told) = post("", 2).await;
    assert_eq!(
        (status, &told["errorNum"], &told["code"], &told["sqlState"]),
        (409, &json!(1210), &json!(409), &json!("23505"))
    );
    let (status, told) = post("overwriteMode=ignore&returnNew=true", 3).await;
    assert_eq!(
        (status, told),
        (201, json!({"_id": "c/k", "_key": "k", "new": null}))
    );
    let (status, told) = post("overwriteMode=update&returnNew=1", 4).await;
    assert_eq!((status, &told["new"]["a"]), (201, &json!(4)));
    assert_eq!(
        post("silent=true&overwriteMode=update", 5).await,
        (201, json!({}))
    );
    for query in [
        "overwriteMode=replace",
        "overwrite=true",
        "returnOld=true",
        "keepNull=false",
    ] {
        let (status, told) = post(query, 6).await;
        assert_eq!((status, &told["errorNum"]), (501, &json!(9)), "{told}");
    }
}

#[tokio::test]
async fn what_cannot_be_promised_is_refused() {
    let (server, seen, _) = table().await;
    let refused = [
        client()
            .patch(server.url("/_api/document/c/k"))
            .header("if-match", "\"x\"")
            .body("{\"a\":1}"),
        client()
            .delete(server.url("/_api/document/c/k"))
            .header("if-match", "\"x\""),
        client()
            .get(server.url("/_api/document/c/k"))
            .header("x-arango-trx-id", "1"),
        client()
            .post(server.url("/_api/document/c"))
            .header("x-arango-async", "store")
            .body("{}"),
        client()
            .patch(server.url("/_api/document/c/k"))
            .body("{\"a\":{\"b\":1}}"),
        client()
            .post(server.url("/_api/document/c?overwriteMode=update"))
            .body("{\"a\":{}}"),
        client()
            .put(server.url("/_api/document/c/k?ignoreRevs=false"))
            .body("{}"),
    ];
    for request in refused {
        let (status, told) = send(request).await;
        assert_eq!((status, &told["errorNum"]), (501, &json!(9)), "{told}");
    }
    let bad = [
        ("POST", "/_api/document", "{}", 400, 1204),
        ("POST", "/_api/document/c?colour=red", "{}", 400, 400),
        ("POST", "/_api/document/c", "{", 400, 600),
        ("POST", "/_api/document/c", "5", 400, 600),
        ("PATCH", "/_api/document/c/k", "{\"_key\":\"l\"}", 400, 1221),
        ("PATCH", "/_api/document/c", "{}", 400, 1227),
        ("GET", "/_api/document/c", "", 405, 405),
        ("GET", "/_api/document/a.b.c/k", "", 400, 1208),
        ("GET", "/_api/cursor", "", 404, 404),
    ];
    for (method, path, body, status, number) in bad {
        let request = client().request(method.parse().unwrap(), server.url(path));
        let (got, told) = send(request.body(body)).await;
        assert_eq!(
            (got, &told["errorNum"]),
            (status, &json!(number)),
            "{method} {path}: {told}"
        );
    }
    assert!(seen.writes().is_empty());
    let (status, told) = ask(&server, "GET", "/_api/document/other/k", None).await;
    assert_eq!((status, &told["errorNum"]), (404, &json!(1203)));
    // An object takes the place of the other where that is said.
    let (status, _) = ask(
        &server,
        "PATCH",
        "/_api/document/c/k?mergeObjects=false",
        Some(json!({"a": {}})),
    )
    .await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn reads_under_a_condition() {
    let (server, _, _) = table().await;
    let (_, made) = ask(
        &server,
        "POST",
        "/_api/document/c",
        Some(json!({"_key": "k"})),
    )
    .await;
    let rev = made["_rev"].as_str().unwrap();
    let url = server.url("/_api/document/c/k");
    let get = async |name: &str, tag: &str| {
        let request = client().get(&url).header(name, tag);
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["etag"], format!("\"{rev}\""));
        (response.status().as_u16(), response.text().await.unwrap())
    };
    for (header, tags, status) in [
        ("if-none-match", "REV", 304),
        ("if-none-match", "\"REV\"", 304),
        ("if-none-match", "W/\"REV\"", 304),
        ("if-none-match", "*", 304),
        ("if-none-match", "\"x\" , W/\"REV\"", 304),
        ("if-none-match", "\"x\", W/\"y\"", 200),
        ("if-none-match", "\"x\"", 200),
        ("if-match", "REV", 200),
        ("if-match", "\"REV\"", 200),
        ("if-match", "*", 200),
        ("if-match", "\"x\",\"REV\"", 200),
        ("if-match", "W/\"REV\"", 412),
        ("if-match", "\"x\", \"y\"", 412),
    ] {
        let told = get(header, &tags.replace("REV", rev)).await;
        assert_eq!(told.0, status, "{header}: {tags}");
        assert_eq!(told.1.is_empty(), status == 304, "{header}: {tags}");
    }
    let (status, told) = get("if-match", "\"x\"").await;
    let told: Json = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (status, &told["errorNum"], &told["_rev"]),
        (412, &json!(1200), &json!(rev))
    );
    let head = client().head(&url).send().await.unwrap();
    assert_eq!(
        (head.status().as_u16(), &head.headers()["etag"]),
        (200, &format!("\"{rev}\"").parse().unwrap())
    );
    assert_eq!(head.text().await.unwrap(), "");
}

#[tokio::test]
async fn arrays_have_as_many_results_in_order() {
    let (server, seen, _) = table().await;
    let array = async |method: &str, query: &str, body: Json| {
        let url = server.url(&format!("/_api/document/c{query}"));
        let response = client()
            .request(method.parse().unwrap(), url)
            .json(&body)
            .send()
            .await
            .unwrap();
        let codes = response
            .headers()
            .get("x-arango-error-codes")
            .map(|v| v.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        (status, codes, response.json::<Json>().await.unwrap())
    };
    let five = json!([{"_key": "1", "a": 1}, {"_key": "1"}, {"_key": "x/y"}, 7, {"_key": "2", "a": 2}, {"_key": "2"}]);
    let (status, codes, told) = array("POST", "", five).await;
    assert_eq!(
        (status, codes.as_deref()),
        (201, Some("1210:2,1221:1,1227:1"))
    );
    let told = told.as_array().unwrap();
    assert_eq!(told.len(), 6);
    assert_eq!(
        (&told[0]["_id"], &told[4]["_key"]),
        (&json!("c/1"), &json!("2"))
    );
    assert_eq!(
        (&told[1]["error"], &told[1]["errorNum"]),
        (&json!(true), &json!(1210))
    );
    assert!(told[1].get("code").is_none());
    assert_eq!(seen.submissions().len(), 1, "they stay together");

    let (status, codes, told) = array(
        "PATCH",
        "?returnNew=true",
        json!([{"_id": "c/2", "b": 5}, {"_key": "9"}, {"_id": "d/2"}, {"b": 1}]),
    )
    .await;
    assert_eq!(
        (status, codes.as_deref()),
        (201, Some("1202:1,1205:1,1226:1"))
    );
    assert_eq!(told[0]["new"]["b"], json!(5));

    let (status, codes, told) = array(
        "PUT",
        "?returnNew=true",
        json!([{"_key": "2", "a": 9}, {"_key": "9"}]),
    )
    .await;
    assert_eq!((status, codes.as_deref()), (201, Some("1202:1")));
    assert_eq!(
        (&told[0]["new"]["a"], &told[0]["new"]["b"]),
        (&json!(9), &Json::Null)
    );

    let (status, _, told) = array("PUT", "?onlyget=true", json!(["1", {"_key": "2"}, "c/3"])).await;
    assert_eq!(
        (status, &told[1]["a"], &told[2]["errorNum"]),
        (200, &json!(9), &json!(1202))
    );
    assert_eq!((&told[0]["_id"], &told[0]["a"]), (&json!("c/1"), &json!(1)));

    let (status, codes, told) = array("DELETE", "?silent=true", json!(["1", "7"])).await;
    assert_eq!(
        (status, codes.as_deref(), told.as_array().unwrap().len()),
        (200, Some("1202:1"), 1)
    );
    let (status, codes, told) = array("DELETE", "?silent=true", json!([{"_key": "2"}])).await;
    assert_eq!((status, codes, told), (200, None, json!({})));
    let (status, _, told) = array("POST", "", json!([])).await;
    assert_eq!((status, told), (201, json!([])));
}

/// A replacement learns the columns from a row once, and again when the table is altered.
#[tokio::test]
async fn a_replacement_empties_columns_that_were_added_since() {
    let (server, seen, table) = table().await;
    for key in ["1", "2"] {
        ask(
            &server,
            "POST",
            "/_api/document/c",
            Some(json!({"_key": key, "a": 1, "b": 1})),
        )
        .await;
    }
    let before = seen.writes().len();
    let replace = async |key: &str| {
        let path = format!("/_api/document/c/{key}?returnNew=true");
        let (status, told) = ask(&server, "PUT", &path, Some(json!({"a": 2}))).await;
        assert_eq!(status, 201, "{told}");
        let mut new = told["new"].clone();
        new.as_object_mut()
            .unwrap()
            .retain(|name, _| !name.starts_with('_'));
        new
    };
    assert_eq!(replace("1").await, json!({"a": 2, "b": null}));
    assert_eq!(replace("2").await, json!({"a": 2, "b": null}));
    assert_eq!(seen.writes().len() - before, 3, "one read, two writes");
    table.add_column("c", 8);
    assert_eq!(replace("1").await, json!({"a": 2, "b": null, "c": null}));
    assert_eq!(seen.writes().len() - before, 5);
    let column = table.0.lock().unwrap().columns.remove(2);
    assert_eq!(&*column, "b");
    assert_eq!(replace("2").await, json!({"a": 2, "c": null}));
}

#[tokio::test]
async fn only_json_is_taken() {
    let (server, _, _) = table().await;
    let (status, told) = post_text(server.url("/_api/document/c"), "text/csv", "a\n1").await;
    assert_eq!((status, &told["code"]), (415, &json!(415)));
}

/// Over a database that gives nothing back, nothing is asked back: the revision is left out, and
/// what needs it is refused.
#[tokio::test]
async fn a_database_that_gives_nothing_back() {
    let (server, mut arrivals) =
        start_with(config(), MIB, Some(Arc::new(ArangoApi::new(false)))).await;
    let table = Table::new();
    let rows = table.clone();
    tokio::spawn(async move {
        while let Some(submission) = arrivals.recv().await {
            answer(submission, &mut |write: &Write| {
                let asks = write.shape.returning != Returning::Nothing;
                assert!(write.shape.op == Op::Get || !asks, "{write:?}");
                rows.0.lock().unwrap().run(write)
            });
        }
    });
    let path = "/_api/document/c";
    let made = ask(
        &server,
        "POST",
        path,
        Some(json!({"_key": "k", "a": 1, "b": 2})),
    )
    .await;
    assert_eq!(made, (201, json!({"_id": "c/k", "_key": "k"})));
    table.add_column("c", 8);
    let put = ask(&server, "PUT", "/_api/document/c/k", Some(json!({"a": 5}))).await;
    assert_eq!(put, (201, json!({"_id": "c/k", "_key": "k"})));
    let (_, row) = ask(&server, "GET", "/_api/document/c/k", None).await;
    assert_eq!(
        (&row["a"], &row["b"], &row["c"]),
        (&json!(5), &Json::Null, &Json::Null)
    );
    assert_eq!(row["_rev"].as_str().unwrap().len(), 16);
    let (status, told) = ask(
        &server,
        "POST",
        &format!("{path}?returnNew=true"),
        Some(json!({})),
    )
    .await;
    assert_eq!((status, &told["errorNum"]), (501, &json!(9)));
    let gone = ask(&server, "DELETE", "/_api/document/c/k", None).await;
    assert_eq!(gone, (200, json!({"_id": "c/k", "_key": "k"})));
}

#[tokio::test]
async fn keys_are_texts_of_their_own() {
    let (server, seen) = serve(good).await;
    ask(&server, "DELETE", "/_api/document/t/1", None).await;
    assert!(!seen.one().shape.is_spelled());
}

#[tokio::test]
async fn what_the_frontend_refuses_is_refused_here_too() {
    let (server, seen) = serve(good).await;
    for table in ["pg_shadow", "information_schema.tables", "_users"] {
        let path = format!("/_api/document/{table}/1");
        assert_eq!(ask(&server, "GET", &path, None).await.0, 403, "{table}");
    }
    for path in ["/_api/batch", "/_api/document/t"] {
        let page = client().post(server.url(path)).header("origin", "null");
        let (status, told) = send(page.body("{}")).await;
        assert_eq!((status, &told["errorNum"]), (403, &json!(403)), "{path}");
    }
    assert!(seen.writes().is_empty());
}

#[tokio::test]
async fn its_routes_are_listed_described_and_counted() {
    let (server, _) = serve(good).await;
    let (status, told) = ask(&server, "GET", "/nowhere", None).await;
    let message = told["error"]["message"].as_str().unwrap();
    assert_eq!(status, 404);
    assert!(
        message.ends_with(
            "GET /, POST /_api/batch, PUT /_api/batch, POST /_api/document, \
             POST /_api/document/{collection}, PUT /_api/document/{collection}, \
             PATCH /_api/document/{collection}, DELETE /_api/document/{collection}, \
             GET /_api/document/{collection}/{key}, PUT /_api/document/{collection}/{key}, \
             PATCH /_api/document/{collection}/{key}, DELETE /_api/document/{collection}/{key} \
             (those under /_api also under /_db/{database})"
        ),
        "{message}"
    );
    let (_, doc) = ask(&server, "GET", "/openapi.json", None).await;
    assert!(doc["paths"]["/v1/batch"].is_object() && doc["paths"]["/_api/batch"].is_object());
    assert!(doc["components"]["responses"]["ArangoError"].is_object());
    ask(&server, "DELETE", "/_api/document/t/1", None).await;
    let line = "windrow_http_requests_total{route=\"/_api/document/{collection}/{key}\",method=\"DELETE\",status=\"2xx\"} 1";
    let metrics = server.metrics();
    assert!(metrics.contains(line), "{line} is not in\n{metrics}");
}

/// Elements of two bytes take sixteen each before they are read, and an error each.
#[tokio::test]
async fn elements_of_an_array_are_charged() {
    for (budget, count, refused) in [
        (MIB, 500, None),
        (MIB, 60_000, Some(429)),
        (64 * MIB, 100_001, Some(413)),
    ] {
        let (server, _lane) = start_with(config(), budget, crate::extension()).await;
        for method in [Method::DELETE, Method::PUT] {
            let body = format!("[{}1]", "1,".repeat(count - 1));
            let url = server.url("/_api/document/t");
            let request = client().request(method.clone(), url).body(body);
            let (status, told) = send(request).await;
            let expected = refused.unwrap_or(status);
            assert_eq!(status, expected, "{method} {count}: {told}");
            assert_eq!(told.is_array(), refused.is_none(), "{method} {count}");
            assert_eq!(server.budget.held(), 0, "{method} {count}");
        }
    }
}
