//! Lines that are written, dropped or refused, over a lane that plays a table.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Client, Response};
use serde_json::{Value as Json, json};
use windrow_core::{Fault, FaultClass, Key, OnConflict, Value, Write, WriteDone};
use windrow_http::{Ack, HttpConfig};

use crate::spooled::{self, Answering};
use crate::support::{Server, client, columns, config, good, serve, serve_with};

/// A client that gives a body no content type.
pub(crate) fn plain() -> Client {
    Client::builder().no_proxy().build().unwrap()
}

async fn write(server: &Server, path: &str, body: impl Into<reqwest::Body>) -> Response {
    let request = plain().post(server.url(path)).body(body);
    request.send().await.unwrap()
}

pub(crate) async fn json_of(response: Response) -> (u16, Json) {
    let status = response.status().as_u16();
    (
        status,
        serde_json::from_str(&response.text().await.unwrap()).unwrap(),
    )
}

fn in_form(code: &str, message: &str) -> Json {
    json!({"code": code, "message": message, "error": message})
}

/// Plays a table that has no column `bad` and a database that is away for rows of `away`.
fn rule(write: &Write) -> Result<WriteDone, Fault> {
    let fault = |class, code| Err(Fault::new(class, code, "it does not work"));
    match &*write.table().table {
        "away" => return fault(FaultClass::Unavailable, "08006"),
        "full" => return fault(FaultClass::Overloaded, "53200"),
        "denied" => return fault(FaultClass::Denied, "42501"),
        "lost" => return fault(FaultClass::Unknown, "08007"),
        _ => {}
    }
    match columns(write).contains(&"bad") {
        true => fault(FaultClass::NoColumn, "42703"),
        false => good(write),
    }
}

#[tokio::test]
async fn a_line_is_a_row() {
    let (server, seen) = serve(good).await;
    let line = "my\\ table,b=y,a=x two=2i,one=1.50,text=\"t\" 1465839830100";
    let response = write(&server, "/write?db=d&precision=ms", line).await;
    assert_eq!(response.status(), 204);
    assert_eq!(response.text().await.unwrap(), "");
    let row = seen.one();
    assert_eq!(&*row.table().table, "my table");
    assert_eq!(columns(&row), ["time", "a", "b", "one", "text", "two"]);
    let values: [Value; 6] = [
        "2016-06-13T17:43:50.100000Z".into(),
        "x".into(),
        "y".into(),
        Value::number("1.50"),
        "t".into(),
        2.into(),
    ];
    assert_eq!(row.values(), values);
    assert_eq!(row.shape.on_conflict, OnConflict::Error);
    assert_eq!(
        row.shape.key,
        Key::Columns([].into()),
        "an id is no key by its name"
    );
}

#[tokio::test]
async fn fields_of_any_order_share_a_shape_and_a_name_may_hold_dots() {
    let (server, seen) = serve(good).await;
    let body = "a.b\"%41 x=1,y=2 1\na.b\"%41 y=2,x=1 2\n";
    let response = write(&server, "/api/v2/write?bucket=b&org=o&precision=s", body).await;
    assert_eq!(response.status(), 204);
    let rows = seen.writes();
    assert!(std::sync::Arc::ptr_eq(&rows[0].shape, &rows[1].shape));
    assert_eq!(
        (rows[0].table().schema.as_deref(), &*rows[0].table().table),
        (None, "a.b\"%41")
    );
}

#[tokio::test]
async fn a_line_without_a_timestamp_has_the_time_of_the_server() {
    let (server, seen) = serve(good).await;
    assert_eq!(write(&server, "/write", "m f=1").await.status(), 204);
    let row = seen.one();
    let Value::Text(time) = &row.values()[0] else {
        panic!("no text");
    };
    assert!(time.starts_with("20") && time.len() == 27, "{time}");
}

#[tokio::test]
async fn good_lines_are_written_and_bad_ones_are_named() {
    let (server, seen) = serve(rule).await;
    let body = "m a=1\n\n# comment\nm a=\nm a=2 1\nm bad=1\nm,a=1 a=2\nm time=3\n";
    let message = "partial write: line 4: unable to parse 'm a=': missing field value; \
                   line 7: two tags or fields are named \"a\"; a table has one column of a name; \
                   line 8: the column time is the timestamp's; rename the tag or field; \
                   line 6: it does not work dropped=4";
    for path in ["/write", "/api/v2/write"] {
        let told = json_of(write(&server, path, body).await).await;
        assert_eq!(told, (400, in_form("invalid", message)));
    }
    assert_eq!(seen.writes().len(), 6);
    let many = "m\n".repeat(12);
    let (_, told) = json_of(write(&server, "/write", many).await).await;
    let message = told["error"].as_str().unwrap();
    assert!(
        message.contains("line 10:") && message.ends_with("; .. dropped=12"),
        "{message}"
    );
    assert!(!message.contains("line 11:"));
}

/// A client sends a body again after 503, and drops it after 400 to 499.
#[tokio::test]
async fn what_may_succeed_later_is_no_partial_write() {
    let (server, _) = serve(rule).await;
    for (table, expected) in [("away", 503), ("full", 503), ("lost", 504)] {
        let body = format!("m bad=1\n{table} a=1\nm a=1\n");
        let response = write(&server, "/write", body).await;
        let retry = response.headers().contains_key("retry-after");
        let (status, told) = json_of(response).await;
        assert_eq!((status, retry), (expected, expected == 503));
        assert_eq!(told, in_form("unavailable", "it does not work"));
    }
    let (status, told) = json_of(write(&server, "/write", "denied a=1").await).await;
    assert_eq!((status, &told["code"]), (403, &json!("forbidden")));
}

#[tokio::test]
async fn many_lines_keep_their_order_and_their_numbers() {
    let (server, seen) = serve(rule).await;
    let line = |n: usize| match n {
        11_999 => "m bad=1\n".to_owned(),
        n => format!("m n={n}i\n"),
    };
    let body: String = (0..12_000).map(line).collect();
    let (status, told) = json_of(write(&server, "/write", body).await).await;
    assert_eq!(status, 400);
    let message = "partial write: line 12000: it does not work dropped=1";
    assert_eq!(told["error"], message);
    let numbers = seen
        .writes()
        .into_iter()
        .map(|write| write.values()[1].clone());
    let expected = (0..11_999).map(Value::from).chain([1.into()]);
    assert!(numbers.eq(expected));
}

#[tokio::test]
async fn bodies_may_be_packed() {
    let (server, seen) = serve(good).await;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"m a=1i\nm a=2i\n").unwrap();
    let request = plain()
        .post(server.url("/write"))
        .header("content-encoding", "gzip");
    let response = request
        .body(encoder.finish().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!((response.status().as_u16(), seen.writes().len()), (204, 2));
    let request = plain()
        .post(server.url("/write"))
        .header("content-encoding", "br");
    let response = request.body("m a=1").send().await.unwrap();
    assert_eq!(response.status(), 415);
}

#[tokio::test]
async fn a_request_is_refused_in_the_same_form() {
    let config = HttpConfig {
        max_body: 10,
        ..config()
    };
    let (server, seen) = serve_with(config, good).await;
    let (status, told) = json_of(write(&server, "/write", "m a=1234567890").await).await;
    assert_eq!((status, &told["code"]), (413, &json!("request too large")));
    let (status, told) = json_of(write(&server, "/write?precision=d", "m a=1").await).await;
    assert_eq!((status, &told["code"]), (400, &json!("invalid")));
    let response = client().get(server.url("/write")).send().await.unwrap();
    assert_eq!(response.headers()["allow"], "POST");
    let (status, told) = json_of(response).await;
    assert_eq!((status, &told["code"]), (405, &json!("method not allowed")));
    assert!(seen.writes().is_empty());
    assert_eq!(write(&server, "/write", "").await.status(), 204);
}

#[tokio::test]
async fn a_key_that_is_there_can_be_updated() {
    let (server, seen) = serve(good).await;
    let path = "/write?on_conflict=update&key=host,time";
    assert_eq!(write(&server, path, "m,host=a f=1").await.status(), 204);
    assert_eq!(write(&server, "/write", "m,host=a f=1").await.status(), 204);
    let [updating, plain] = seen.writes().try_into().unwrap();
    assert_eq!(updating.shape.on_conflict, OnConflict::Update);
    assert_eq!(
        updating.shape.key,
        Key::Columns(["host".into(), "time".into()].into())
    );
    assert_eq!(plain.shape.on_conflict, OnConflict::Error);
}

#[tokio::test]
async fn lines_may_be_answered_by_the_spool() {
    let Answering {
        server,
        lane,
        entries,
        ..
    } = spooled::serve(config(), Ack::Commit, |_| Ok(())).await;
    let response = write(&server, "/write?ack=spool", "m a=1\nm a=2").await;
    assert_eq!(response.status(), 204);
    assert!(response.headers().contains_key("windrow-place"));
    assert_eq!((lane.writes().len(), entries.writes().len()), (0, 2));
}

#[tokio::test]
async fn clients_may_ask_and_create_databases_before() {
    let (server, seen) = serve(good).await;
    let query = |form: &str| {
        let request = client().post(server.url("/query")).body(form.to_owned());
        request.header("content-type", "application/x-www-form-urlencoded")
    };
    for statement in ["CREATE+DATABASE+%22telegraf%22", "create%20database%20x%3B"] {
        let response = query(&format!("q={statement}")).send().await.unwrap();
        let told = json_of(response).await;
        assert_eq!(told, (200, json!({"results": [{"statement_id": 0}]})));
    }
    let url = server.url("/query?db=x&q=SHOW+DATABASES");
    let (status, told) = json_of(client().get(url).send().await.unwrap()).await;
    assert_eq!(
        (status, &told["results"][0]["series"][0]["name"]),
        (200, &json!("databases"))
    );
    for form in ["q=SELECT+1", "q=", ""] {
        let (status, told) = json_of(query(form).send().await.unwrap()).await;
        assert_eq!((status, &told["code"]), (400, &json!("invalid")), "{form}");
    }
    for method in [reqwest::Method::GET, reqwest::Method::HEAD] {
        let request = client().request(method, server.url("/ping"));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 204);
        assert_eq!(response.headers()["x-influxdb-version"], "1.8.10");
    }
    let (status, told) = json_of(client().get(server.url("/health")).send().await.unwrap()).await;
    assert_eq!((status, &told["status"]), (200, &json!("pass")));
    assert!(seen.writes().is_empty());
}

/// The description that is served and the router know the same paths and methods.
#[test]
fn openapi_and_router_agree() {
    let extension = crate::extension().unwrap();
    let doc: Json = serde_json::from_str(extension.openapi()).unwrap();
    let paths = doc["paths"].as_object().unwrap();
    let mut described: Vec<(&str, String)> = paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(|method| (path.as_str(), method.to_uppercase()))
        })
        .collect();
    let endpoints = extension.endpoints();
    let mut known: Vec<_> = endpoints
        .iter()
        .map(|endpoint| (endpoint.template, endpoint.method.to_owned()))
        .collect();
    described.sort_unstable();
    known.sort_unstable();
    assert_eq!(described, known);
    for (index, endpoint) in endpoints.iter().enumerate() {
        let found = extension.find(&endpoint.method.parse().unwrap(), endpoint.template);
        assert_eq!(found.unwrap().endpoint, index);
    }
}
