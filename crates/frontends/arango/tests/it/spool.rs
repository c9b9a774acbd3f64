//! Documents that are answered by the spool.

use reqwest::RequestBuilder;
use serde_json::{Value as Json, json};
use windrow_core::{Fault, FaultClass, Value, Write};
use windrow_http::Ack;

use crate::spooled::{Answering, serve};
use crate::support::{client, config};

/// Refuses documents whose key is `full`.
fn rule(write: &Write) -> Result<(), Fault> {
    match &write.row()[0] {
        Value::Text(key) if &**key == "full" => {
            Err(Fault::new(FaultClass::Overloaded, "53100", "full"))
        }
        _ => Ok(()),
    }
}

async fn asked(request: RequestBuilder) -> (u16, bool, Json) {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers());
    let has_place = headers.contains_key("windrow-place");
    let text = response.text().await.unwrap();
    (status, has_place, serde_json::from_str(&text).unwrap())
}

/// An answer with a revision, or one that was to wait for the disk, comes after the commit.
#[tokio::test]
async fn silent_inserts_are_accepted_where_that_is_the_default() {
    let Answering {
        server,
        lane,
        entries,
        ..
    } = serve(config(), Ack::Spool, rule).await;
    let insert = |query: &str, body: &'static str| {
        let url = server.url(&format!("/_api/document/c?{query}"));
        asked(client().post(url).body(body))
    };
    let one = "{\"_key\":\"a\",\"a\":1}";
    assert_eq!(insert("silent=true", one).await, (202, true, json!({})));
    let many = "[{\"_key\":\"a\"},{\"_key\":\"b\"}]";
    let ignore = "silent=true&overwriteMode=ignore&waitForSync=false";
    assert_eq!(insert(ignore, many).await, (202, true, json!({})));
    let (status, _, told) = insert("silent=true", "[{\"_key\":\"a\"},{\"_key\":\"full\"}]").await;
    assert_eq!((status, &told[0]["errorNum"]), (202, &json!(21003)));
    let (status, _, told) = insert("silent=true", "{\"_key\":\"full\"}").await;
    assert_eq!((status, &told["errorNum"]), (429, &json!(21003)));
    assert_eq!((lane.writes().len(), entries.writes().len()), (0, 6));
    let committed = insert("silent=true&waitForSync=true", one).await;
    assert_eq!(committed, (201, false, json!({})));
    assert_eq!(insert("", one).await.0, 201);
    assert_eq!((lane.writes().len(), entries.writes().len()), (2, 6));
}

#[tokio::test]
async fn inserts_are_committed_by_default() {
    let Answering { server, lane, .. } = serve(config(), Ack::Commit, rule).await;
    let url = server.url("/_api/document/c?silent=true");
    let told = asked(client().post(url).body("{\"_key\":\"a\"}")).await;
    assert_eq!(told, (201, false, json!({})));
    assert_eq!(lane.writes().len(), 1);
}

#[tokio::test]
async fn a_place_is_waited_for() {
    let Answering { server, spool, .. } = serve(config(), Ack::Spool, rule).await;
    let insert = client().post(server.url("/_api/document/c?silent=true"));
    let response = insert.body("{\"_key\":\"a\"}").send().await.unwrap();
    let place = response.headers()["windrow-place"].to_str().unwrap();
    let url = server.url(&format!("/_api/document/c/a?after={place}"));
    let read = tokio::spawn(asked(client().get(url)));
    spool.has_waiting(1).await;
    spool.apply();
    assert_eq!(read.await.unwrap().0, 404, "the lane has no rows");
    let wrong = server.url("/_api/document/c/a?after=nowhere");
    let (status, _, told) = asked(client().get(wrong)).await;
    assert_eq!((status, &told["errorNum"]), (400, &json!(400)));
}
