//! Envelopes and documents against real databases.

use serde_json::{Value as Json, json};

use crate::support::{Db, Gateway};

const SCHEMA: &str = "create table things (_key varchar(64) primary key, n integer check (n >= 0), note varchar(100))";

async fn databases() -> [Db; 2] {
    let all = [Db::postgres().await, Db::sqlite()];
    for db in &all {
        db.run(SCHEMA).await;
    }
    all
}

fn envelope(requests: &[String]) -> String {
    let part = |(n, request): (usize, &String)| {
        format!(
            "--X\r\nContent-Type: application/x-arango-batchpart\r\nContent-Id: {n}\r\n\r\n{request}\r\n"
        )
    };
    requests.iter().enumerate().map(part).collect::<String>() + "--X--"
}

/// Status and body of each part of an answer.
async fn run(gateway: &Gateway, requests: &[String]) -> (Vec<(u16, Json)>, Option<String>) {
    let response = reqwest::Client::new()
        .post(gateway.url("/_db/mine/_api/batch"))
        .header("content-type", "multipart/form-data; boundary=X")
        .body(envelope(requests))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let errors = response.headers().get("x-arango-errors");
    let errors = errors.map(|v| v.to_str().unwrap().to_owned());
    let text = response.text().await.unwrap();
    let parts = text.split("--X\r\n").skip(1).enumerate().map(|(n, part)| {
        let (head, answer) = part.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Id: {n}")), "{head}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let body = body.trim_end_matches("--X--\r\n");
        (
            head[9..12].parse().unwrap(),
            serde_json::from_str(body).unwrap_or(Json::Null),
        )
    });
    (parts.collect(), errors)
}

fn create(body: &Json) -> String {
    format!("POST /_api/document?collection=things HTTP/1.1\r\n\r\n{body}")
}

#[tokio::test]
async fn parts_on_one_key_keep_their_order() {
    for db in databases().await {
        let gateway = Gateway::to(&db.url()).await;
        let requests = [
            create(&json!({"_key": "a", "n": 1})),
            "PATCH /_api/document/things/a HTTP/1.1\r\n\r\n{\"n\":2}".to_owned(),
            "GET /_api/document/things/a HTTP/1.1\r\n\r\n".to_owned(),
            create(&json!({"_key": "a", "n": 3})),
            create(&json!({"_key": "b", "n": -1})),
            "PUT /_api/document/things/a HTTP/1.1\r\n\r\n{\"note\":\"put\"}".to_owned(),
            "GET /v1/tables/things/rows/a?key=_key HTTP/1.1\r\n\r\n".to_owned(),
            "DELETE /_api/document/things/a HTTP/1.1\r\n\r\n".to_owned(),
            "GET /_api/document/things/a HTTP/1.1\r\n\r\n".to_owned(),
            "POST /_api/document/nothing HTTP/1.1\r\n\r\n{}".to_owned(),
            "POST /v1/tables/things/rows HTTP/1.1\r\n\r\n{\"_key\":\"c\",\"n\":5}".to_owned(),
        ];
        let (parts, errors) = run(&gateway, &requests).await;
        let statuses: Vec<u16> = parts.iter().map(|p| p.0).collect();
        assert_eq!(
            statuses,
            [201, 201, 200, 409, 400, 201, 200, 200, 404, 404, 201],
            "{parts:?}"
        );
        assert_eq!(errors.as_deref(), Some("4"));
        let numbers = [3, 4, 8, 9].map(|n| parts[n].1["errorNum"].as_u64().unwrap());
        assert_eq!(numbers, [1210, 1620, 1202, 1203]);
        assert_eq!(parts[2].1["n"], 2);
        assert_eq!(
            parts[2].1["_rev"], parts[1].1["_rev"],
            "the row that was written is the one that is read"
        );
        assert_eq!(parts[6].1, json!({"_key": "a", "n": null, "note": "put"}));
        let left = db.rows("select _key, n from things").await;
        assert_eq!(left, [[Some("c".to_owned()), Some("5".to_owned())]]);
        gateway.stop().await;
    }
}

/// The parts of one envelope are joined as the requests of many clients are.
#[tokio::test]
async fn five_thousand_parts_take_few_batches() {
    for db in databases().await {
        let gateway = Gateway::to(&db.url()).await;
        let row = |n: usize| json!({"_key": format!("k{}", n % 4990), "n": n});
        let requests: Vec<String> = (0..5000).map(|n| create(&row(n))).collect();
        let (parts, errors) = run(&gateway, &requests).await;
        assert_eq!((parts.len(), errors.as_deref()), (5000, Some("10")));
        for (n, (status, body)) in parts.iter().enumerate() {
            let wanted = if n < 4990 { 201 } else { 409 };
            assert_eq!(*status, wanted, "part {n}: {body}");
        }
        assert_eq!(db.number("select count(*) from things").await, 4990);
        assert_eq!(
            db.number("select sum(n) from things").await,
            4990 * 4989 / 2
        );
        let (_, lanes) = gateway.send("GET", "/v1/lanes", None).await;
        let batches = lanes["lanes"][0]["totals"]["batches"].as_u64().unwrap();
        assert!(batches < 500, "{batches} batches");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn arrays_of_documents() {
    for db in databases().await {
        let gateway = Gateway::to(&db.url()).await;
        let documents = json!([{"n": 1}, {"_key": "a", "n": 2}, {"_key": "a"}, {"_key": "b", "n": -5}, {"_key": "c", "note": "x"}]);
        let path = "/_api/document/things";
        let (status, told) = gateway
            .send("POST", path, Some(documents.to_string()))
            .await;
        assert_eq!(status, 201);
        let numbers: Vec<Option<u64>> = (0..5).map(|n| told[n]["errorNum"].as_u64()).collect();
        assert_eq!(
            numbers,
            [None, None, Some(1210), Some(1620), None],
            "{told}"
        );
        let made = told[0]["_key"].as_str().unwrap();
        assert_eq!(made.len(), 36);
        let (_, told) = gateway
            .send(
                "PUT",
                &format!("{path}?onlyget=true"),
                Some(json!([made, "a", "z"]).to_string()),
            )
            .await;
        assert_eq!(
            (&told[0]["n"], &told[1]["n"], &told[2]["errorNum"]),
            (&json!(1), &json!(2), &json!(1202))
        );
        let replaced = json!([{"_key": "c", "n": 9}, {"_key": "z"}]);
        let (status, told) = gateway
            .send(
                "PUT",
                &format!("{path}?returnNew=true"),
                Some(replaced.to_string()),
            )
            .await;
        assert_eq!(
            (status, &told[0]["new"]["note"], &told[0]["new"]["n"]),
            (201, &Json::Null, &json!(9))
        );
        let (_, told) = gateway
            .send(
                "DELETE",
                &format!("{path}?returnOld=true"),
                Some(json!(["a", {"_key": made}]).to_string()),
            )
            .await;
        assert_eq!(
            (&told[0]["old"]["n"], &told[1]["old"]["n"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(db.number("select count(*) from things").await, 1);
        gateway.stop().await;
    }
}

/// A collection that is not there is made with `_key` as its key, where tables are made at all.
#[tokio::test]
async fn a_collection_is_made_with_its_key() {
    for db in [Db::postgres().await, Db::sqlite()] {
        let gateway = Gateway::with(&db.url(), "[database]\ncreate_tables = true").await;
        let path = "/_api/document/fresh";
        let body = || Some(json!({"_key": "k", "a": {"b": 1}}).to_string());
        assert_eq!(gateway.send("POST", path, body()).await.0, 201);
        let (status, told) = gateway.send("POST", path, body()).await;
        assert_eq!((status, &told["errorNum"]), (409, &json!(1210)));
        let (_, told) = gateway.send("GET", "/_api/document/fresh/k", None).await;
        assert_eq!(
            (&told["_id"], &told["a"]),
            (&json!("fresh/k"), &json!({"b": 1}))
        );
        gateway.stop().await;
    }
}
