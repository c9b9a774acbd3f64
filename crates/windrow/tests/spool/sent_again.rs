//! Requests that are sent again with the same key.

use std::time::{Duration, Instant};

use reqwest::{Client, Response};
use serde_json::{Value as Json, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use windrow_testkit::proxy::{Direction, Proxy};

use crate::support::{Db, Gateway, TEST_TIMEOUT, client, spool};

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

/// One table whose keys are given, and one whose keys the database gives.
fn tables(db: &Db) -> &'static str {
    match db {
        Db::Postgres(_) => {
            "create table t (id int primary key, v varchar(50));
            create table made (id int generated always as identity primary key, v varchar(50));"
        }
        Db::Maria(_) => {
            "create table t (id int primary key, v varchar(50));
            create table made (id int auto_increment primary key, v varchar(50));"
        }
        _ => {
            "create table t (id integer primary key, v text);
            create table made (id integer primary key autoincrement, v text);"
        }
    }
}

fn databases() -> [Db; 3] {
    [Db::postgres(), Db::mariadb(), Db::sqlite()]
}

/// What was asked for, to be sent any number of times.
struct Asked<'a> {
    gateway: &'a Gateway,
    method: &'a str,
    path: &'a str,
    kind: &'a str,
    body: String,
    key: &'a str,
}

/// Status, whether it is an answer of before, and the answer.
type Told = (u16, bool, Json);

impl<'a> Asked<'a> {
    /// A row in the table whose keys the database gives.
    fn made(gateway: &'a Gateway, key: &'a str, v: &str) -> Self {
        Self {
            gateway,
            method: "POST",
            path: "/v1/tables/made/rows",
            kind: JSON,
            body: json!({"v": v}).to_string(),
            key,
        }
    }

    async fn response(&self, client: &Client) -> reqwest::Result<Response> {
        let url = self.gateway.process.url(self.path);
        let asked = client.request(self.method.parse().unwrap(), url);
        let asked = asked.header("content-type", self.kind);
        let asked = asked.header("idempotency-key", self.key);
        asked.body(self.body.clone()).send().await
    }

    async fn send(&self) -> Told {
        let response = self.response(&client()).await.unwrap();
        let status = response.status().as_u16();
        let replayed = response.headers().contains_key("idempotency-replayed");
        (status, replayed, response.json().await.unwrap())
    }

    /// Sends it twice: the second answer is that of the first, and says so.
    async fn twice(&self) -> Told {
        let (status, replayed, told) = self.send().await;
        assert!(!replayed, "{} {}: {told}", self.method, self.path);
        let again = self.send().await;
        assert_eq!(again, (status, true, told.clone()), "{}", self.path);
        (status, replayed, told)
    }
}

async fn are_executed_once(db: Db) {
    db.sql(tables(&db));
    let directory = spool();
    let gateway = Gateway::with(&db.url(), directory.path(), &["--ack", "commit"]);
    let ask = |method, path, body: Json, key| Asked {
        gateway: &gateway,
        method,
        path,
        kind: JSON,
        body: body.to_string(),
        key,
    };
    // One row, whose answer is known beforehand.
    let rows = "/v1/tables/made/rows";
    let (status, _, told) = ask("POST", rows, json!({"v": "one"}), "\"a\"")
        .twice()
        .await;
    assert_eq!((status, told), (201, json!({"rows": 1})));
    // One row, whose answer only the database knows.
    let returning = "/v1/tables/made/rows?returning=id,v";
    let asked = ask("POST", returning, json!({"v": "two"}), "b");
    let (status, _, told) = asked.twice().await;
    assert_eq!(
        (status, &told["returned"]["v"]),
        (201, &json!("two")),
        "{told}"
    );
    // The same key with something else.
    for body in [json!({"v": "three"}), json!({"v": null})] {
        let (status, _, told) = ask("POST", rows, body, "\"a\"").send().await;
        assert_eq!(status, 422, "{told}");
    }
    assert_eq!(
        db.sql("select count(*), count(distinct id) from made"),
        "2|2"
    );
    // An error stays the answer, although the request would succeed by now.
    let rows = "/v1/tables/t/rows";
    let (status, ..) = ask("POST", rows, json!({"id": 1, "v": "x"}), "c")
        .twice()
        .await;
    assert_eq!(status, 201);
    let refused = ask("POST", rows, json!({"id": 1, "v": "y"}), "d");
    let (status, _, told) = refused.twice().await;
    assert_eq!(
        (status, &told["error"]["code"]),
        (409, &json!("23505")),
        "{told}"
    );
    // What changes and what goes.
    let changed = ask("PATCH", "/v1/tables/t/rows/1", json!({"v": "z"}), "e");
    assert_eq!(changed.twice().await.2, json!({"rows": 1}));
    let gone = ask("DELETE", "/v1/tables/t/rows/1", Json::Null, "f");
    assert_eq!(gone.twice().await.2, json!({"rows": 1}));
    let (status, replayed, _) = refused.send().await;
    assert_eq!((status, replayed), (409, true));
    // Operations, some of which fail, and all or nothing.
    let row = |id: u32| json!({"op": "insert", "table": "t", "row": {"id": id, "v": "o"}});
    let batch = |atomic: bool| json!({"operations": [row(2), row(2), row(3)], "atomic": atomic});
    let (status, _, told) = ask("POST", "/v1/batch", batch(true), "g").twice().await;
    assert_eq!((status, &told["index"]), (409, &json!(1)), "{told}");
    let (status, _, told) = ask("POST", "/v1/batch", batch(false), "h").twice().await;
    assert_eq!((status, &told["errors"]), (207, &json!(1)), "{told}");
    assert_eq!(db.sql("select id from t order by id"), "2\n3");
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_executed_once_in_postgresql() {
    are_executed_once(Db::postgres()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_executed_once_in_mariadb() {
    are_executed_once(Db::mariadb()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_executed_once_in_sqlite() {
    are_executed_once(Db::sqlite()).await;
}

fn lines(ids: impl Iterator<Item = u32>) -> String {
    ids.map(|id| format!("{}\n", json!({"id": id, "v": "x"})))
        .collect()
}

/// Sends the beginning of a body, and leaves.
async fn break_off(gateway: &Gateway, body: &str, key: &str) {
    let mut stream = TcpStream::connect(gateway.process.address()).await.unwrap();
    let request = format!(
        "POST /v1/tables/t/rows HTTP/1.1\r\nhost: localhost\r\ncontent-type: {NDJSON}\r\nidempotency-key: {key}\r\ncontent-length: 100000\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

/// Sends it until nothing else is under way with its key.
async fn answered(asked: &Asked<'_>) -> Told {
    let start = Instant::now();
    loop {
        let told = asked.send().await;
        if told.0 != 409 {
            return told;
        }
        assert!(start.elapsed() < TEST_TIMEOUT, "{}", told.2);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Rows that stand alone are remembered one by one: a body that was broken off goes on where it
/// ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_many_rows_goes_on_where_it_was_broken_off() {
    for db in databases() {
        db.sql(tables(&db));
        let directory = spool();
        let gateway = Gateway::with(&db.url(), directory.path(), &["--ack", "commit"]);
        let ask = |body: String, key| Asked {
            gateway: &gateway,
            method: "POST",
            path: "/v1/tables/t/rows",
            kind: NDJSON,
            body,
            key,
        };
        db.sql("insert into t values (7, 'was there')");
        break_off(&gateway, &lines(0..5), "a").await;
        let start = Instant::now();
        while db.sql("select count(*) from t") != "6" {
            assert!(start.elapsed() < TEST_TIMEOUT, "{}", gateway.process.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let whole = ask(lines(0..2_500), "a");
        let (status, replayed, told) = answered(&whole).await;
        assert_eq!((status, replayed, &told["errors"]), (207, true, &json!(1)));
        assert_eq!(told["results"][7]["error"]["code"], json!("23505"));
        assert_eq!(told["rows"], json!(2_499));
        db.sql("delete from t where id >= 1000");
        assert_eq!(whole.send().await, (207, true, told));
        for other in [lines(0..2_499), lines(0..2_501), lines(1..2_501)] {
            let (status, _, told) = ask(other, "a").send().await;
            assert_eq!(status, 422, "{told}");
        }
        assert_eq!(db.sql("select count(*) from t"), "1000");
        gateway.stop();
    }
}

/// Of requests that come at once with one key, one is executed; the others are told its answer, or
/// to ask again.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_at_once_is_executed() {
    for db in databases() {
        db.sql(tables(&db));
        let directory = spool();
        let gateway = Gateway::with(&db.url(), directory.path(), &["--ack", "commit"]);
        let asked = Asked {
            path: "/v1/tables/made/rows?returning=id",
            ..Asked::made(&gateway, "k", "x")
        };
        let told = futures_util::future::join_all((0..50).map(|_| asked.send())).await;
        let first = asked.send().await.2;
        for (status, _, told) in told {
            match status {
                201 => assert_eq!(told, first),
                other => assert_eq!(other, 409, "{told}"),
            }
        }
        assert_eq!(db.sql("select count(*) from made"), "1");
        gateway.stop();
    }
}

/// Two gateways know nothing of each other; the database decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_good_for_all_gateways_of_a_database() {
    for db in [Db::postgres(), Db::mariadb()] {
        db.sql(tables(&db));
        let (one, two) = (spool(), spool());
        let start = |directory: &tempfile::TempDir| {
            Gateway::with(&db.url(), directory.path(), &["--ack", "commit"])
        };
        let (one, two) = (start(&one), start(&two));
        for key in ["a", "b", "c", "d", "e"] {
            let ask = |gateway| Asked::made(gateway, key, key);
            let (first, second) = (ask(&one), ask(&two));
            let (first, second) = tokio::join!(first.send(), second.send());
            assert_eq!((first.0, second.0), (201, 201), "{first:?} {second:?}");
            assert_ne!(first.1, second.1, "one of them was executed");
        }
        assert_eq!(db.sql("select count(*) from made"), "5");
        one.stop();
        two.stop();
    }
}

/// Sends each request until it is answered, while the gateway is killed again and again.
async fn survive_kills(db: Db, ack: &str) {
    const REQUESTS: u32 = 120;
    db.sql(tables(&db));
    let directory = spool();
    let mut gateway = Gateway::with(&db.url(), directory.path(), &["--ack", ack]);
    let mut open: Vec<u32> = (0..REQUESTS).collect();
    let mut rounds = 0;
    while !open.is_empty() {
        let client = client();
        let send = async |id: u32| {
            let key = format!("key-{id}");
            let asked = Asked::made(&gateway, &key, &id.to_string());
            let answered = asked.response(&client).await;
            answered.is_ok_and(|answer| answer.status().is_success())
        };
        let sent = futures_util::future::join_all(open.iter().map(|id| send(*id)));
        // Some are answered by then, some are under way, and some have not left.
        let limit = Duration::from_millis(3 + 4 * rounds);
        let answered = tokio::time::timeout(limit, sent).await.unwrap_or_default();
        let mut answered = answered.into_iter();
        open.retain(|_| !answered.next().unwrap_or(false));
        gateway.kill9();
        gateway = Gateway::with(&db.url(), directory.path(), &["--ack", ack]);
        rounds += 1;
        assert!(rounds < 200, "{} requests are never answered", open.len());
    }
    gateway.level().await;
    gateway.stop();
    assert_eq!(
        db.sql("select count(*), count(distinct v) from made"),
        format!("{REQUESTS}|{REQUESTS}")
    );
    assert_eq!(db.sql("select count(*) from windrow_rejected"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_with_keys_survive_kills_of_the_gateway() {
    for ack in ["commit", "spool"] {
        for db in databases() {
            survive_kills(db, ack).await;
        }
    }
}

/// A request whose commit is not answered is tried again by the gateway, and has its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_found_out() {
    for db in [Db::postgres(), Db::mariadb()] {
        db.sql(tables(&db));
        let url = db.url();
        let upstream = url
            .split(['@', '/'])
            .find(|part| part.contains(':') && !part.ends_with(':'));
        let proxy = Proxy::builder(upstream.unwrap()).start().await.unwrap();
        let through = proxy.through(&url).unwrap();
        let directory = spool();
        let gateway = Gateway::with(&through, directory.path(), &["--ack", "commit"]);
        let asked = |key| Asked {
            path: "/v1/tables/made/rows?returning=v",
            ..Asked::made(&gateway, key, key)
        };
        // The table is known and the statements are prepared by then.
        for key in ["a", "b", "c"] {
            assert_eq!(asked(key).send().await.0, 201);
        }
        proxy.cut_after(Direction::ToClient, 0);
        let (status, _, told) = asked("d").send().await;
        // It was committed, so what it gave is lost; or it was not, and is executed now.
        assert!(matches!(status, 201 | 409), "{told}");
        assert_eq!(db.sql("select count(*) from made where v = 'd'"), "1");
        gateway.stop();
    }
}

/// What the spool has taken twice is applied once; a key that was used for something else makes a
/// dead letter of the second one.
#[tokio::test(flavor = "multi_thread")]
async fn the_spool_applies_a_key_once() {
    for db in databases() {
        db.sql(tables(&db));
        let directory = spool();
        let mut gateway = Gateway::start(&db.url(), directory.path());
        let ask = async |gateway: &Gateway, key: &str, v: &str| {
            let asked = Asked::made(gateway, key, v);
            asked.send().await.0
        };
        for _ in 0..3 {
            for key in ["a", "b", "c"] {
                assert_eq!(ask(&gateway, key, "x").await, 202);
            }
            gateway.level().await;
            assert_eq!(ask(&gateway, "a", "y").await, 422);
            gateway.stop();
            gateway = Gateway::start(&db.url(), directory.path());
        }
        // Nobody here remembers the key any more; the database does.
        assert_eq!(ask(&gateway, "b", "y").await, 202);
        gateway.level().await;
        gateway.stop();
        assert_eq!(db.sql("select count(*) from made"), "3");
        assert_eq!(db.sql("select count(*) from windrow_rejected"), "1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_keys_are_forgotten() {
    for db in databases() {
        db.sql(tables(&db));
        let directory = spool();
        let settings = directory.path().join("windrow.toml");
        std::fs::write(&settings, "[database]\nidempotency_keep = \"1s\"\n").unwrap();
        let settings = settings.to_str().unwrap();
        let at = directory.path().join("spool");
        let more = ["--ack", "commit", "--config", settings];
        let gateway = Gateway::with(&db.url(), &at, &more);
        let asked = Asked::made(&gateway, "k", "x");
        assert_eq!(asked.send().await.0, 201);
        let start = Instant::now();
        while db.sql("select count(*) from windrow_idempotency") != "0" {
            assert!(start.elapsed() < TEST_TIMEOUT, "{}", gateway.process.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(asked.send().await, (201, false, json!({"rows": 1})));
        assert_eq!(db.sql("select count(*) from made"), "2");
        gateway.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_make_no_sense_are_refused() {
    let db = Db::sqlite();
    db.sql(tables(&db));
    let directory = spool();
    let gateway = Gateway::start(&db.url(), directory.path());
    let long = "k".repeat(256);
    for key in ["\"\"", "\"a", "a b", &long] {
        let asked = Asked::made(&gateway, key, "x");
        let (status, _, told) = asked.send().await;
        assert_eq!(status, 400, "{told}");
    }
    assert_eq!(db.sql("select count(*) from made"), "0");
    gateway.stop();
}
