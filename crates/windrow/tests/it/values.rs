//! JSON becomes what the column holds, with every digit, and comes back.

use serde_json::{Value as Json, json};

use crate::support::{Db, Gateway};

/// Columns of PostgreSQL with a JSON token each, what the database shows of it as text, and what a
/// GET gives back (`None`: the same JSON).
const POSTGRES: [(&str, &str, &str, Option<&str>); 24] = [
    ("smallint", "-32768", "-32768", None),
    ("integer", "2147483647", "2147483647", None),
    ("bigint", "9007199254740993", "9007199254740993", None),
    (
        "numeric",
        "123456789012345678901234567890.123456789",
        "123456789012345678901234567890.123456789",
        None,
    ),
    ("numeric(6,2)", "1234.5", "1234.50", Some("1234.50")),
    ("real", "0.1", "0.1", None),
    (
        "double precision",
        "0.30000000000000004",
        "0.30000000000000004",
        None,
    ),
    ("boolean", "true", "true", None),
    (
        "text",
        r#""quote \" back \\ new\nline ünï 😀""#,
        "quote \" back \\ new\nline ünï 😀",
        None,
    ),
    ("text", "5", "5", Some("\"5\"")),
    ("varchar(5)", r#""{a,b}""#, "{a,b}", None),
    ("char(4)", r#""ab""#, "ab  ", Some("\"ab  \"")),
    ("bytea", r#""AAEC/w==""#, "\\x000102ff", None),
    (
        "uuid",
        r#""a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11""#,
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        None,
    ),
    ("date", r#""2013-01-01""#, "2013-01-01", None),
    (
        "timestamp",
        r#""2013-01-01T06:00:00.123456""#,
        "2013-01-01 06:00:00.123456",
        None,
    ),
    (
        "timestamptz",
        r#""2013-01-01T06:00:00+01:00""#,
        "2013-01-01 05:00:00+00",
        Some("\"2013-01-01T05:00:00Z\""),
    ),
    (
        "jsonb",
        r#"{"a": [1, {"b": null}], "n": 1.50}"#,
        r#"{"a": [1, {"b": null}], "n": 1.50}"#,
        None,
    ),
    (
        "json",
        r#"{"z": 1, "a": "x"}"#,
        r#"{"z": 1, "a": "x"}"#,
        None,
    ),
    ("integer[]", "[1, null, 3]", "{1,NULL,3}", None),
    (
        "text[]",
        r#"["a,b", "q\"uote", "back\\slash", "NULL", ""]"#,
        r#"{"a,b","q\"uote","back\\slash","NULL",""}"#,
        None,
    ),
    ("mood", r#""happy""#, "happy", None),
    ("even", "4", "4", None),
    ("inet", r#""10.0.0.1/8""#, "10.0.0.1/8", None),
];

#[tokio::test]
async fn postgres_types_keep_their_values_alone_and_together() {
    let db = Db::postgres().await;
    db.run("create type mood as enum ('sad', 'happy'); create domain even as integer check (value % 2 = 0)").await;
    let columns: Vec<String> = POSTGRES
        .iter()
        .enumerate()
        .map(|(n, c)| format!("c{n} {}", c.0))
        .collect();
    db.run(&format!(
        "create table samples (id bigint primary key, {})",
        columns.join(", ")
    ))
    .await;
    let gateway = Gateway::to(&db.url()).await;
    let fields: Vec<String> = POSTGRES
        .iter()
        .enumerate()
        .map(|(n, c)| format!("\"c{n}\": {}", c.1))
        .collect();
    let nulls: Vec<String> = (0..POSTGRES.len())
        .map(|n| format!("\"c{n}\": null"))
        .collect();
    let row = |id: usize| format!("{{\"id\": {id}, {}}}", fields.join(", "));
    let empty = |id: usize| format!("{{\"id\": {id}, {}}}", nulls.join(", "));
    // One row alone, and a body of fifty with a row of nulls among them: one statement for all.
    let (status, answer) = gateway.insert("samples", &row(0)).await;
    assert_eq!(status, 201, "{answer}");
    let many: Vec<String> = (1..50).map(row).chain([empty(50)]).collect();
    let (status, answer) = gateway
        .insert("samples", &format!("[{}]", many.join(",")))
        .await;
    assert_eq!(status, 200, "{answer}");
    for (n, (kind, _, shown, _)) in POSTGRES.iter().enumerate() {
        let texts = db
            .rows(&format!(
                "select distinct c{n}::text from samples where id < 50"
            ))
            .await;
        let wanted = if *kind == "char(4)" {
            shown.trim_end()
        } else {
            shown
        };
        assert_eq!(texts, [[Some(wanted.to_owned())]], "{kind}");
        assert_eq!(
            db.number(&format!("select count(*) from samples where c{n} is null"))
                .await,
            1,
            "{kind}"
        );
    }
    for id in [0, 49] {
        let (_, got) = gateway
            .send("GET", &format!("/v1/tables/samples/rows/{id}"), None)
            .await;
        for (n, (kind, sent, _, back)) in POSTGRES.iter().enumerate() {
            let wanted: Json = serde_json::from_str(back.unwrap_or(sent)).unwrap();
            assert_eq!(got[format!("c{n}")], wanted, "{kind}");
        }
    }
    gateway.stop().await;
}

/// Generated columns, defaults, identity and serial keys: each client gets its own value back.
#[tokio::test]
async fn generated_values_return_to_their_own_client() {
    let db = Db::postgres().await;
    db.run(
        "create table a (id bigint generated always as identity primary key, n int, twice int generated always as (n * 2) stored,
            made timestamptz default now(), word text default 'none');
         create table b (id serial primary key, n int)",
    )
    .await;
    let gateway = Gateway::to(&db.url()).await;
    for table in ["a", "b"] {
        let rows: Vec<String> = (0..500).map(|n| format!("{{\"n\": {n}}}")).collect();
        let path = format!("/v1/tables/{table}/rows?returning=id,n");
        let requests = rows
            .iter()
            .map(|row| gateway.send("POST", &path, Some(row.clone())));
        let answers = futures_util::future::join_all(requests).await;
        for (n, (status, answer)) in answers.iter().enumerate() {
            assert_eq!(
                (*status, &answer["returned"]["n"]),
                (201, &json!(n)),
                "{answer}"
            );
            let id = answer["returned"]["id"].as_i64().unwrap();
            assert_eq!(
                db.number(&format!("select n from {table} where id = {id}"))
                    .await,
                i64::try_from(n).unwrap()
            );
        }
    }
    assert_eq!(
        db.number(
            "select count(*) from a where twice = n * 2 and word = 'none' and made is not null"
        )
        .await,
        500
    );
    gateway.stop().await;
}

#[tokio::test]
async fn sqlite_values_are_exact_or_refused() {
    let db = Db::sqlite();
    db.run("create table samples (id integer primary key, i integer, r real, t text, b blob, d decimal(20,5))").await;
    let gateway = Gateway::to(&db.url()).await;
    let row =
        r#"{"id": 1, "i": 9007199254740993, "r": 0.1, "t": "5", "b": "AAEC/w==", "d": 12345.67}"#;
    let (status, answer) = gateway.insert("samples", row).await;
    assert_eq!(status, 201, "{answer}");
    let (_, got) = gateway.send("GET", "/v1/tables/samples/rows/1", None).await;
    assert_eq!(got, serde_json::from_str::<Json>(row).unwrap());
    // A REAL would round these digits away; SQLite has no other number for them.
    let (status, answer) = gateway
        .insert("samples", r#"{"id": 2, "d": 123456789012345.67891}"#)
        .await;
    assert_eq!(status, 422, "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("TEXT"),
        "{answer}"
    );
    assert_eq!(db.number("select count(*) from samples").await, 1);
    gateway.stop().await;
}
