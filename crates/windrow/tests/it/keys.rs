//! A row is found in a path by the key that it was written with in a body.

use serde_json::{Value as Json, json};

use windrow_testkit::cratedb::CrateDb;

use crate::support::{Db, Gateway};

/// A type of a key, a value as a body has it, and the same as a path has it.
type Case = (&'static str, Json, &'static str);

async fn found(db: Db, cases: Vec<Case>) {
    for (place, (declared, _, _)) in cases.iter().enumerate() {
        db.run(&table(place, declared)).await;
    }
    found_in(&db.url(), cases).await;
}

fn table(place: usize, declared: &str) -> String {
    format!("create table t{place} (k {declared} primary key, v integer)")
}

async fn found_in(url: &str, cases: Vec<Case>) {
    let gateway = Gateway::to(url).await;
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
        ("citext", json!("Word"), "wORD"),
        ("ltree", json!("top.next"), "top.next"),
        ("int4range", json!("[1,3]"), "%5B1%2C4)"),
        ("jsonb", json!(7), "7"),
        ("jsonb", json!(1.50), "1.5"),
        ("jsonb", json!("7"), "%227%22"),
        ("jsonb", json!("abc"), "abc"),
        ("jsonb", json!("a b"), "%22a%20b%22"),
        ("jsonb", json!("null"), "null"),
        ("jsonb", json!(true), "true"),
    ];
    let db = Db::postgres().await;
    db.run("create extension citext; create extension ltree")
        .await;
    found(db, cases).await;
}

#[tokio::test]
async fn mariadb() {
    let database = tokio::task::spawn_blocking(|| windrow_testkit::mariadb::shared().unwrap());
    let database = database.await.unwrap();
    let cases = vec![
        ("integer", json!(1), "1"),
        ("integer", json!("1"), "01"),
        ("decimal(10,2)", json!(1.0), "1"),
        ("decimal(10,2)", json!("1"), "1.00"),
        ("double", json!(0.1), "0.10"),
        (
            "varchar(9) collate utf8mb4_unicode_ci",
            json!("Straße"),
            "strasse",
        ),
        ("varchar(9) collate utf8mb4_bin", json!("1.0"), "1.0"),
        ("char(5)", json!("ab"), "ab"),
        ("boolean", json!(true), "1"),
        ("varbinary(9)", json!("aGk="), "aGk="),
        ("date", json!("2024-02-29"), "2024-02-29"),
        (
            "datetime(3)",
            json!("2024-02-29T12:00:00Z"),
            "2024-02-29%2012:00:00.000",
        ),
        ("enum('a','b')", json!("a"), "a"),
        (
            "uuid",
            json!("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("inet6", json!("::1"), "0:0::1"),
    ];
    let url = database.url();
    let cases: Vec<_> = cases
        .into_iter()
        .filter(|(declared, _, _)| windrow_testkit::mariadb::has_type(url, declared).unwrap())
        .collect();
    for (place, (declared, _, _)) in cases.iter().enumerate() {
        database.exec(&table(place, declared)).unwrap();
    }
    found_in(database.url(), cases).await;
}

#[tokio::test]
async fn cratedb() {
    let server = CrateDb::start(2).await.unwrap();
    let cases = vec![
        ("integer", json!(1), "1"),
        ("integer", json!("1"), "1"),
        ("bigint", json!(1_i64 << 40), "1099511627776"),
        ("text", json!("1"), "1"),
        ("text", json!("true"), "true"),
        ("text", json!("a b"), "a%20b"),
        ("double precision", json!(0.5), "0.50"),
    ];
    let http = reqwest::Client::new();
    let at = server.url().replace("cratedb:", "http:") + "/_sql";
    for (place, (declared, _, _)) in cases.iter().enumerate() {
        let sql = format!("CREATE TABLE t{place} (k {declared} PRIMARY KEY, v integer)");
        let statement = json!({"stmt": sql});
        let told = http
            .post(&at)
            .body(statement.to_string())
            .send()
            .await
            .unwrap();
        assert!(told.status().is_success(), "{}", told.text().await.unwrap());
    }
    found_in(&server.url(), cases).await;
}
