//! Lists of tables and of rows.

use serde_json::{Value as Json, json};

use crate::support::{Db, Gateway};

const TABLE: &str =
    "create table readings (device varchar(20), at timestamp(0), v int, primary key (device, at))";

/// Rows of three devices; every fifth has no value.
const ROWS: usize = 60;

async fn fill(gateway: &Gateway) -> Vec<Json> {
    let row = |n: usize| {
        let v = (!n.is_multiple_of(5)).then_some(n % 7);
        let at = format!("2026-11-{:02}T10:00:00", n / 3 + 1);
        json!({"device": format!("d,{}", n % 3), "at": at, "v": v})
    };
    let rows: Vec<Json> = (0..ROWS).map(row).collect();
    let body = Some(json!(rows).to_string());
    let (status, answer) = gateway.send("POST", "/v1/tables/readings/rows", body).await;
    assert_eq!((status, &answer["rows"]), (200, &json!(ROWS)), "{answer}");
    rows
}

/// Follows `next` from page to page.
async fn all(gateway: &Gateway, query: &str) -> (Vec<Json>, usize) {
    let mut path = format!("/v1/tables/readings/rows?{query}");
    let (mut rows, mut pages) = (Vec::new(), 0);
    loop {
        let (status, page) = gateway.send("GET", &path, None).await;
        assert_eq!(status, 200, "{path}: {page}");
        rows.extend(page["rows"].as_array().unwrap().iter().cloned());
        pages += 1;
        assert_eq!(page["more"], json!(page["next"].is_string()));
        match page["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => return (rows, pages),
        }
    }
}

async fn check(gateway: &Gateway) {
    let mut rows = fill(gateway).await;
    let text = |row: &Json, name: &str| row[name].as_str().unwrap().to_owned();
    rows.sort_by_key(|row| (text(row, "device"), text(row, "at")));
    let (listed, pages) = all(gateway, "limit=7").await;
    assert_eq!((&listed, pages), (&rows, 9));

    // NULL has no place in an order that is not the key's.
    let mut valued: Vec<Json> = rows
        .iter()
        .filter(|row| !row["v"].is_null())
        .cloned()
        .collect();
    let place = |row: &Json| (row["v"].as_i64(), text(row, "device"), text(row, "at"));
    valued.sort_by_key(|row| std::cmp::Reverse(place(row)));
    assert_eq!(all(gateway, "order=-v&limit=11").await.0, valued);

    let (few, _) = all(
        gateway,
        "device=d%2C1&at>=2026-11-05T10:00:00&at%3C=2026-11-09T10:00:00&columns=v&limit=2",
    )
    .await;
    let of = |row: &&Json| row["device"] == "d,1";
    let expected = rows.iter().filter(of).skip(4).take(5);
    let expected: Vec<Json> = expected.map(|row| json!({"v": row["v"]})).collect();
    assert_eq!(few, expected);

    let (status, tables) = gateway.send("GET", "/v1/tables", None).await;
    assert_eq!((status, &tables["tables"]), (200, &json!(["readings"])));
    for (query, status, word) in [
        ("x=1", 422, "no column named x"),
        ("limit=0", 400, "1 to 1000"),
        ("order=-v,at", 400, "both directions"),
        ("start_after=a", 400, "ordered by 2 columns"),
        ("v=seven", 422, ""),
    ] {
        let path = format!("/v1/tables/readings/rows?{query}");
        let (got, answer) = gateway.send("GET", &path, None).await;
        // SQLite and MySQL compare a number with any text.
        if !word.is_empty() {
            let message = answer["error"]["message"].as_str().unwrap();
            assert_eq!(got, status, "{query}: {answer}");
            assert!(message.contains(word), "{message}");
        }
        assert!(got < 500, "{query}: {answer}");
    }
    let (status, _) = gateway.send("GET", "/v1/tables/nowhere/rows", None).await;
    assert_eq!(status, 404);
    let (status, _) = gateway
        .send("GET", "/v1/tables/windrow_loads/rows", None)
        .await;
    assert_eq!(status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_listed_page_by_page() {
    for db in [Db::postgres().await, Db::sqlite()] {
        db.run(TABLE).await;
        let gateway = Gateway::to(&db.url()).await;
        check(&gateway).await;
        gateway.stop().await;
    }
    let mariadb = tokio::task::spawn_blocking(|| windrow_testkit::mariadb::shared().unwrap());
    let mariadb = mariadb.await.unwrap();
    mariadb
        .exec(&TABLE.replace("timestamp(0)", "datetime"))
        .unwrap();
    let gateway = Gateway::to(mariadb.url()).await;
    check(&gateway).await;
    gateway.stop().await;
}

#[tokio::test]
async fn rows_of_a_table_without_a_key_have_one_page() {
    let db = Db::sqlite();
    db.run("create table t (a integer)").await;
    let gateway = Gateway::to(&db.url()).await;
    for n in 0..3 {
        assert_eq!(gateway.insert("t", &format!("{{\"a\":{n}}}")).await.0, 201);
    }
    let list = async |query: &str| {
        let path = format!("/v1/tables/t/rows?{query}");
        gateway.send("GET", &path, None).await
    };
    let rows = json!([{"a": 2}, {"a": 1}]);
    let page = json!({"rows": rows, "more": true, "next": null});
    assert_eq!(list("order=-a&limit=2").await, (200, page));
    let (status, answer) = list("order=a&start_after=1").await;
    assert_eq!(status, 400, "{answer}");
    gateway.stop().await;
}

/// Moments of any spelling are compared and ordered by time, in tables that Windrow makes.
#[tokio::test]
async fn moments_are_listed_by_time() {
    for db in [Db::postgres().await, Db::sqlite()] {
        let gateway = Gateway::with(&db.url(), "[database]\ncreate_tables = true\n").await;
        for (id, at) in [
            (1, "2026-01-01 00:00:00+00"),
            (2, "2026-01-01T00:00:00.25Z"),
            (3, "2025-12-31T22:00:00.5-02:00"),
            (4, "2026-01-01T01:00:01+01:00"),
            (5, "2026-01-01"),
        ] {
            let row = json!({"id": id, "at": at}).to_string();
            let (status, answer) = gateway.insert("moments", &row).await;
            assert_eq!(status, 201, "{answer}");
        }
        for (query, expected) in [
            ("order=at", json!([1, 5, 2, 3, 4])),
            ("at=2026-01-01T00:00:00Z", json!([1, 5])),
            ("at>=2026-01-01T00:00:00.25Z", json!([2, 3, 4])),
            ("at<=2026-01-01T02:00:00%2B02:00", json!([1, 5])),
            (
                "at>=2026-01-01T02:00:00.1%2B02:00&order=-at",
                json!([4, 3, 2]),
            ),
        ] {
            let path = format!("/v1/tables/moments/rows?columns=id&{query}");
            let (status, page) = gateway.send("GET", &path, None).await;
            assert_eq!(status, 200, "{query}: {page}");
            let ids = page["rows"].as_array().unwrap().iter();
            let ids: Vec<_> = ids.map(|row| row["id"].clone()).collect();
            assert_eq!(json!(ids), expected, "{query} {}", db.url());
        }
        gateway.stop().await;
    }
}
