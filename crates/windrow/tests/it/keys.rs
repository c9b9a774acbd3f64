//! A row is found in a path by the key that it was written with in a body.

use serde_json::{Value as Json, json};

use crate::support::{Db, Gateway};

/// A type of a key, a value as a body has it, and the same as a path has it.
type Case = (&'static str, Json, &'static str);

async fn found(db: Db, cases: Vec<Case>) {
    for (place, (declared, _, _)) in cases.iter().enumerate() {
        db.run(&format!(
            "create table t{place} (k {declared} primary key, v integer)"
        ))
        .await;
    }
    let gateway = Gateway::to(&db.url()).await;
    for (place, (declared, value, path)) in cases.iter().enumerate() {
        let table = format!("t{place}");
        let what = format!("{declared}: {value} as {path}");
        let row = json!({"k": value, "v": 1}).to_string();
        let (status, told) = gateway.insert(&table, &row).await;
        assert_eq!(status, 201, "{what}: {told}");
        for query in ["", "?key=k"] {
            let path = format!("/v1/tables/{table}/rows/{path}{query}");
            let (status, told) = gateway.send("GET", &path, None).await;
            assert_eq!((status, &told["v"]), (200, &json!(1)), "{what}: {told}");
            let change = Some("{\"v\":1}".to_owned());
            let (status, told) = gateway.send("PATCH", &path, change).await;
            assert_eq!((status, &told["rows"]), (200, &json!(1)), "{what}: {told}");
        }
        let key = json!({"k": value});
        let operations = json!({"operations": [
            {"op": "get", "table": table, "key": value}, {"op": "update", "table": table, "key": key, "row": {"v": 2}},
            {"op": "delete", "table": table, "key": value}, {"op": "insert", "table": table, "row": {"k": value}}
        ]});
        let (_, told) = gateway
            .send("POST", "/v1/batch", Some(operations.to_string()))
            .await;
        for place in 0..4 {
            assert_eq!(told["results"][place]["rows"], 1, "{what}: {told}");
        }
        let path = format!("/v1/tables/{table}/rows/{path}");
        let (status, told) = gateway.send("DELETE", &path, None).await;
        assert_eq!((status, &told["rows"]), (200, &json!(1)), "{what}: {told}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn sqlite() {
    let cases = vec![
        ("", json!(1), "1"),
        ("", json!("1"), "%221%22"),
        ("", json!("abc"), "abc"),
        ("", json!(true), "true"),
        ("", json!(1.5), "1.50"),
        ("integer", json!(1), "1"),
        ("integer", json!(true), "true"),
        ("real", json!(9_007_199_254_740_993_i64), "9007199254740993"),
        ("text", json!("1"), "1"),
        ("text", json!("\"1\""), "%221%22"),
        ("boolean", json!(true), "true"),
        ("boolean", json!("true"), "%22true%22"),
        ("blob", json!("aGk="), "aGk="),
        ("blob", json!(7), "7"),
    ];
    found(Db::sqlite(), cases).await;
}

#[tokio::test]
async fn postgres() {
    let cases = vec![
        ("integer", json!(1), "1"),
        ("integer", json!("1"), "1"),
        ("numeric", json!(1.0), "1"),
        ("numeric(10,2)", json!("1"), "1.00"),
        ("double precision", json!(0.1), "0.10"),
        ("real", json!(0.1), "0.1"),
        ("char(5)", json!("ab"), "ab"),
        ("char(5)", json!("ab "), "ab"),
        ("varchar(5)", json!("1.0"), "1.0"),
        ("text", json!(1.50), "1.5"),
        ("text collate \"C\"", json!("true"), "true"),
        ("boolean", json!(true), "true"),
        ("bytea", json!("aGk="), "aGk="),
        ("bytea", json!("aGk="), "%5Cx6869"),
        (
            "uuid",
            json!("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        ),
        ("date", json!("2024-02-29"), "20240229"),
        (
            "timestamptz",
            json!("2024-02-29T12:00:00Z"),
            "2024-02-29T13:00:00%2B01",
        ),
        ("inet", json!("10.0.0.1"), "10.0.0.1%2F32"),
    ];
    found(Db::postgres().await, cases).await;
}
