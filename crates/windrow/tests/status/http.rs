//! The page and what it shows, over HTTP.

use std::path::Path;

use reqwest::Client;
use serde_json::{Value as Json, json};

use windrow_testkit::command;

use crate::support::{Db, Gateway};

const TABLE: &str = "create table t (id integer primary key, n integer)";

async fn gateway(toml: &str) -> (Db, Gateway) {
    let db = Db::sqlite();
    db.run(TABLE).await;
    let gateway = Gateway::with(&db.url(), toml).await;
    (db, gateway)
}

/// Status, content type and body of an answer to a request with these headers.
async fn get(gateway: &Gateway, path: &str, headers: &[(&str, &str)]) -> (u16, String, String) {
    let mut request = Client::new().get(gateway.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let kind = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    (answer.status().as_u16(), kind, answer.text().await.unwrap())
}

#[tokio::test]
async fn browsers_get_the_page_and_others_a_text() {
    let (_db, gateway) = gateway("").await;
    let (status, kind, text) = get(&gateway, "/", &[]).await;
    assert_eq!((status, &*kind), (200, "text/plain; charset=utf-8"));
    assert!(text.contains("/openapi.json"), "{text}");
    let browser = [("accept", "text/html,application/xhtml+xml;q=0.9")];
    let (status, kind, page) = get(&gateway, "/", &browser).await;
    assert_eq!((status, &*kind), (200, "text/html; charset=utf-8"));
    assert!(page.contains("<title>Windrow</title>"));
    let answer = Client::new().get(gateway.url("/"));
    let answer = answer.header("accept", "text/html").send().await.unwrap();
    let policy = answer.headers()["content-security-policy"]
        .to_str()
        .unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    gateway.stop().await;
}

#[tokio::test]
async fn the_figures_are_those_of_the_program() {
    let (_db, gateway) = gateway("").await;
    for id in 0..3 {
        let (status, _) = gateway.insert("t", &format!("{{\"id\":{id}}}")).await;
        assert_eq!(status, 201);
    }
    assert_eq!(gateway.insert("t", "{\"id\":1}").await.0, 409);
    let (status, shown) = gateway.send("GET", "/v1/status", None).await;
    assert_eq!(status, 200);
    let figures = &shown["figures"];
    assert_eq!(figures["accepted"], 4.0);
    assert_eq!(figures["faults"]["unique"], 1.0, "{figures}");
    assert_eq!(figures["histograms"]["http_request_seconds"]["count"], 4.0);
    assert_eq!(figures["lanes"]["default"]["rows"], 4.0, "{figures}");
    assert_eq!(shown["about"]["database"], "SQLite");
    assert_eq!(shown["lanes"][0]["totals"]["succeeded"], 3);
    assert_eq!(shown["tables"][0]["table"], "t");
    let failed = &shown["failures"][0];
    assert_eq!(failed["table"], "t", "{shown}");
    assert_eq!(
        (&failed["class"], &failed["count"]),
        (&json!("unique"), &json!(1))
    );
    assert_eq!(failed["code"], "23505");
    assert_eq!(gateway.send("GET", "/v1/status?x=1", None).await.0, 400);
    assert_eq!(gateway.send("POST", "/v1/status", None).await.0, 405);
    gateway.stop().await;
}

/// The next event of a stream.
async fn event(answer: &mut reqwest::Response, text: &mut String) -> Json {
    loop {
        if let Some((event, rest)) = text.split_once("\n\n") {
            let data = event.strip_prefix("event: status\ndata: ").unwrap();
            let data = serde_json::from_str(data).unwrap();
            *text = rest.to_owned();
            return data;
        }
        let chunk = answer.chunk().await.unwrap().expect("the stream goes on");
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}

#[tokio::test]
async fn events_come_until_the_server_stops() {
    let (_db, gateway) = gateway("").await;
    let stream = Client::new().get(gateway.url("/v1/status/events"));
    let mut stream = stream.send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut text = String::new();
    let first = event(&mut stream, &mut text).await;
    assert_eq!(first["figures"]["accepted"], 0.0);
    assert!(first["history"].is_array());
    gateway.insert("t", "{\"id\":1}").await;
    while event(&mut stream, &mut text).await["figures"]["accepted"] != 1.0 {}
    // Who follows them keeps no server from ending.
    gateway.stop().await;
    while stream.chunk().await.is_ok_and(|chunk| chunk.is_some()) {}
}

#[tokio::test]
async fn the_token_keeps_the_figures_and_not_the_page() {
    let (_db, gateway) = gateway("[http]\ntoken = 's3cret'").await;
    let (status, _, page) = get(&gateway, "/", &[("accept", "text/html")]).await;
    assert_eq!(status, 200);
    assert!(!page.contains("s3cret"));
    for path in ["/v1/status", "/v1/status/events"] {
        assert_eq!(get(&gateway, path, &[]).await.0, 401, "{path}");
        let wrong = [("authorization", "Bearer x")];
        assert_eq!(get(&gateway, path, &wrong).await.0, 401, "{path}");
    }
    let right = [("authorization", "Bearer s3cret")];
    assert_eq!(get(&gateway, "/v1/status", &right).await.0, 200);
    gateway.stop().await;
}

#[tokio::test]
async fn pages_of_others_are_kept_out() {
    let (_db, gateway) = gateway("").await;
    for path in ["/", "/v1/status", "/v1/status/events"] {
        for foreign in [
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("host", "evil.example"),
        ] {
            let (status, ..) = get(&gateway, path, &[foreign]).await;
            assert_eq!(status, 403, "{path} {foreign:?}");
        }
    }
    gateway.stop().await;
}

#[tokio::test]
async fn what_never_ends_is_no_part_of_an_envelope() {
    let (_db, gateway) = gateway("").await;
    let body = "--b\r\ncontent-type: application/http\r\n\r\nGET /v1/status/events HTTP/1.1\r\n\r\n\r\n--b--\r\n";
    let kind = "multipart/mixed; boundary=b";
    let sent = gateway.try_send("POST", "/v1/batch", kind, Some(body.into()));
    let (status, answer) = sent.await.unwrap();
    assert_eq!(status, 200, "{answer}");
    let text = answer.as_str().unwrap();
    assert!(
        text.contains("400 Bad Request") && text.contains("ask for it alone"),
        "{text}"
    );
    assert_eq!(
        gateway.send("GET", "/healthz", None).await.1,
        json!({"healthy": true})
    );
    gateway.stop().await;
}

#[tokio::test]
async fn values_of_failed_rows_are_shown_only_where_that_is_allowed() {
    let db = Db::postgres().await;
    db.run("create table t (id int primary key, mail text unique)")
        .await;
    for (toml, is_allowed) in [("", false), ("http.show_values = true", true)] {
        let gateway = Gateway::with(&db.url(), toml).await;
        let row = |id: u32| format!("{{\"id\":{id},\"mail\":\"s3cret@example.org\"}}");
        gateway.insert("t", &row(1)).await;
        assert_eq!(gateway.insert("t", &row(2)).await.0, 409);
        for path in ["/v1/status", "/v1/lanes"] {
            let (_, shown) = gateway.send("GET", path, None).await;
            assert_eq!(shown["failures"][0]["constraint"], "t_mail_key", "{shown}");
            assert_eq!(shown.to_string().contains("s3cret"), is_allowed, "{shown}");
        }
        gateway.stop().await;
    }
}

/// Runs a load of two rows into a database of its own, told to tell whoever listens there.
fn load(http: &str) -> command::CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.csv");
    std::fs::write(&file, "id,n\n1,2\n2,3\n").unwrap();
    let to = format!("sqlite:{}", folder.path().join("other.db").display());
    let mut load = command::command(Path::new(env!("CARGO_BIN_EXE_windrow")));
    let file = file.to_str().unwrap();
    let options = ["--to", &to, "--table", "t", "--create", "--http", http];
    command::run(load.arg("load").arg(file).args(options))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_tells_how_far_it_is() {
    let (_db, gateway) = gateway("").await;
    let http = gateway.url("").trim_start_matches("http://").to_owned();
    tokio::task::spawn_blocking(move || load(&http).ends(0))
        .await
        .unwrap();
    let (_, shown) = gateway.send("GET", "/v1/status", None).await;
    let [task] = shown["tasks"].as_array().unwrap().as_slice() else {
        panic!("{shown}");
    };
    assert_eq!(task["command"], "load");
    let what = task["what"].as_str().unwrap();
    assert!(what.ends_with("rows.csv into t"), "{what}");
    assert_eq!(
        (&task["state"], &task["rows"]),
        (&json!("ended"), &json!(2))
    );
    assert_eq!(task["done"], 1.0);
    for (body, status) in [("{}", 400), ("no", 400)] {
        let answer = gateway.send("POST", "/v1/status/tasks", Some(body.into()));
        assert_eq!(answer.await.0, status);
    }
    assert_eq!(gateway.send("GET", "/v1/status/tasks", None).await.0, 405);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_not_there_holds_up_nothing() {
    let told = tokio::task::spawn_blocking(|| load("127.0.0.1:1").ends(0));
    let said = told.await.unwrap().err;
    assert!(
        said.contains("the status page does not show this: nobody listens on 127.0.0.1:1: "),
        "{said}"
    );
}
