//! The page in a real Chromium. Left out where that is not installed; `axe` looks at the page where
//! `./test` has fetched it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::Value as Json;
use tokio::task::JoinHandle;
use windrow_testkit::browser::Browser;
use windrow_testkit::postgres::Postgres;

use crate::support::{Db, Gateway};

const LAPTOP: (u32, u32) = (1280, 800);
const PHONE: (u32, u32) = (390, 844);

const TABLE: &str = "create table events (id integer primary key, n integer not null, note text)";

/// A browser, or the reason why there is none.
async fn browser() -> Option<Browser> {
    let browser = Browser::start().await.unwrap();
    if browser.is_none() {
        eprintln!("left out: Chromium is not installed (apt-get install chromium)");
    }
    browser
}

fn target() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    std::env::var_os("CARGO_TARGET_DIR").map_or(beside, PathBuf::from)
}

/// What axe finds: the rule and the elements of each finding.
async fn findings(browser: &mut Browser) -> Json {
    let path = target().join("axe/node_modules/axe-core/axe.min.js");
    let Ok(axe) = std::fs::read_to_string(&path) else {
        eprintln!("left out: axe-core is not there (./test drivers fetches it where npm is)");
        return Json::Array(Vec::new());
    };
    browser.evaluate(&format!("{axe}\n;true")).await.unwrap();
    let run = "axe.run().then(found => found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.target + ' ' + node.failureSummary).join('; ')))";
    browser.evaluate(run).await.unwrap()
}

/// Looks at the page as it is, on a laptop and a phone, light and dark: no findings, nothing is
/// wider than the window, and a picture of each in target/status.
async fn look_at(browser: &mut Browser, name: &str) {
    let folder = target().join("status");
    std::fs::create_dir_all(&folder).unwrap();
    for (size, device) in [(LAPTOP, "laptop"), (PHONE, "phone")] {
        for (dark, scheme) in [(false, "light"), (true, "dark")] {
            browser.look(size, dark).await.unwrap();
            let found = findings(browser).await;
            assert_eq!(found, Json::Array(Vec::new()), "{name}, {device}, {scheme}");
            let wide = "document.documentElement.scrollWidth";
            let wide = browser.evaluate(wide).await.unwrap();
            assert!(
                wide.as_u64().unwrap() <= u64::from(size.0),
                "{name}, {device}: {wide}"
            );
            let picture = browser.picture().await.unwrap();
            let path = folder.join(format!("{name}-{device}-{scheme}.png"));
            std::fs::write(path, picture).unwrap();
            // Those of the book are made anew by WINDROW_PICTURES=docs/images.
            if let (Some(book), true) = (
                std::env::var_os("WINDROW_PICTURES"),
                dark == (name == "away"),
            ) {
                let path = Path::new(&book).join(format!("status-{name}-{device}.webp"));
                std::fs::write(path, browser.small_picture().await.unwrap()).unwrap();
            }
        }
    }
    browser.look(LAPTOP, false).await.unwrap();
}

fn shows(id: &str, text: &str) -> String {
    format!("document.getElementById('{id}')?.innerText.includes({text:?})")
}

/// Clients that write until they are stopped. Where `failing`, one row of three has no `n`, and one
/// of nine a key that is there already.
struct Clients {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Clients {
    fn start(gateway: &Gateway, failing: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let url = gateway.url("/v1/tables/events/rows");
        let client = |number: u32| {
            let (stop, url) = (Arc::clone(&stop), url.clone());
            tokio::spawn(async move {
                let client = reqwest::Client::new();
                let others = if failing { 5_000_000 } else { 0 };
                for at in (number * 10_000_000 + others).. {
                    if stop.load(Relaxed) {
                        return;
                    }
                    let n = match failing && at % 3 == 0 {
                        true => "null".to_owned(),
                        false => at.to_string(),
                    };
                    let id = if failing && at % 9 == 1 {
                        10_000_000
                    } else {
                        at
                    };
                    let body = format!("{{\"id\":{id},\"n\":{n},\"note\":\"x\"}}");
                    let sent = client.post(&url).body(body);
                    let sent = sent.header("content-type", "application/json").send();
                    assert!(sent.await.unwrap().status().as_u16() < 500);
                }
            })
        };
        let tasks = (1..=32).map(client).collect();
        Self { stop, tasks }
    }

    async fn stop(self) {
        self.stop.store(true, Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_shows_what_goes_on() {
    let Some(mut browser) = browser().await else {
        return;
    };
    let server = Postgres::start().unwrap();
    server.exec(TABLE).unwrap();
    let gateway = Gateway::with(&server.url(), "[pg]\nlisten = '127.0.0.1:0'").await;
    browser.look(LAPTOP, false).await.unwrap();
    browser.open(&gateway.url("/")).await.unwrap();
    browser.until(&shows("state", "running")).await.unwrap();
    browser.until(&shows("lanes", "default")).await.unwrap();
    browser.until(&shows("t-rows", "0")).await.unwrap();
    look_at(&mut browser, "idle").await;

    let clients = Clients::start(&gateway, false);
    // Two points of the history, ten seconds apart, and rates of some seconds.
    let drawn = "document.getElementById('c-rows').getAttribute('d')?.split('L').length > 3";
    browser.until(drawn).await.unwrap();
    browser.until(&shows("t-share", "%")).await.unwrap();
    browser.until(&shows("tables", "events")).await.unwrap();
    browser.until(&shows("t-cost", "s")).await.unwrap();
    look_at(&mut browser, "loaded").await;
    clients.stop().await;

    let clients = Clients::start(&gateway, true);
    browser.until(&shows("failed", "not_null")).await.unwrap();
    browser.until(&shows("failed", "unique")).await.unwrap();
    browser.until(&shows("last", "events_pkey")).await.unwrap();
    browser.until(&shows("state", "writes fail")).await.unwrap();
    let drawn = "Boolean(document.getElementById('c-failed').getAttribute('d'))";
    browser.until(drawn).await.unwrap();
    look_at(&mut browser, "failing").await;
    clients.stop().await;
    gateway.stop().await;
    browser.until(&shows("state", "no answer")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_is_seen() {
    let Some(mut browser) = browser().await else {
        return;
    };
    let server = Postgres::start().unwrap();
    server.exec(TABLE).unwrap();
    let spool = tempfile::tempdir().unwrap();
    let toml = format!("spool.directory = '{}'", spool.path().join("s").display());
    let gateway = Gateway::with(&server.url(), &toml).await;
    browser.look(LAPTOP, false).await.unwrap();
    browser.open(&gateway.url("/")).await.unwrap();
    browser.until(&shows("state", "running")).await.unwrap();
    server.stop().unwrap();
    let rows: String = (0..5000)
        .map(|id| format!("{{\"id\":{id},\"n\":1}}\n"))
        .collect();
    let path = "/v1/tables/events/rows?ack=spool&results=none";
    let kind = "application/x-ndjson";
    let (status, answer) = gateway
        .try_send("POST", path, kind, Some(rows))
        .await
        .unwrap();
    assert_eq!(status, 202, "{answer}");
    browser.until(&shows("spool", "waiting")).await.unwrap();
    browser.until(&shows("spool", "5,000")).await.unwrap();
    browser
        .until(&shows("state", "database away"))
        .await
        .unwrap();
    look_at(&mut browser, "away").await;
    server.restart().unwrap();
    browser.until(&shows("state", "running")).await.unwrap();
    assert_eq!(
        browser
            .evaluate("document.getElementById('trouble').hidden")
            .await
            .unwrap(),
        true
    );
    gateway.stop().await;
}

/// The focus goes on to the element of this id.
async fn tab_to(browser: &mut Browser, id: &str) {
    for _ in 0..60 {
        browser.press("Tab", 9).await.unwrap();
        let focus = browser.evaluate("document.activeElement.id").await.unwrap();
        if focus == id {
            return;
        }
    }
    panic!("no way to {id} by the key Tab");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_used_by_the_keyboard_alone() {
    let Some(mut browser) = browser().await else {
        return;
    };
    let db = Db::sqlite();
    db.run(TABLE).await;
    let gateway = Gateway::with(&db.url(), "[http]\ntoken = 's3cret'").await;
    browser.look(LAPTOP, false).await.unwrap();
    browser.open(&gateway.url("/")).await.unwrap();
    browser
        .until(&shows("state", "token needed"))
        .await
        .unwrap();
    look_at(&mut browser, "token").await;
    // The field has the focus already.
    browser.write("wrong").await.unwrap();
    browser.press("Enter", 13).await.unwrap();
    browser
        .until(&shows("trouble", "not the one"))
        .await
        .unwrap();
    browser.write("s3cret").await.unwrap();
    tab_to(&mut browser, "keep").await;
    browser.press(" ", 32).await.unwrap();
    browser.press("Enter", 13).await.unwrap();
    browser.until(&shows("state", "running")).await.unwrap();
    // Opened again, it is still logged in.
    browser.open(&gateway.url("/")).await.unwrap();
    browser.until(&shows("state", "running")).await.unwrap();

    // Sending a row is for those who ask for it.
    tab_to(&mut browser, "send-open").await;
    browser.press("Enter", 13).await.unwrap();
    tab_to(&mut browser, "table").await;
    browser.write("events").await.unwrap();
    tab_to(&mut browser, "row").await;
    browser
        .evaluate("document.activeElement.select()")
        .await
        .unwrap();
    browser.write("{\"id\": 7, \"n\": 8}").await.unwrap();
    browser.press("Tab", 9).await.unwrap();
    browser.press("Enter", 13).await.unwrap();
    browser.until(&shows("answer", "201 after")).await.unwrap();
    assert_eq!(db.number("select n from events where id = 7").await, 8);
    browser.press("Enter", 13).await.unwrap();
    browser.until(&shows("answer", "409 after")).await.unwrap();
    browser.until(&shows("failed", "unique")).await.unwrap();

    tab_to(&mut browser, "forget").await;
    browser.press("Enter", 13).await.unwrap();
    browser
        .until(&shows("state", "token needed"))
        .await
        .unwrap();
    gateway.stop().await;
}

/// Where no stream can be had, the page asks for the same figures.
#[tokio::test(flavor = "multi_thread")]
async fn it_asks_where_there_is_no_stream() {
    let Some(mut browser) = browser().await else {
        return;
    };
    let db = Db::sqlite();
    let gateway = Gateway::to(&db.url()).await;
    browser.without("*/v1/status/events").await.unwrap();
    browser.open(&gateway.url("/")).await.unwrap();
    browser.until(&shows("state", "running")).await.unwrap();
    browser.until(&shows("lanes", "default")).await.unwrap();
    gateway.stop().await;
}
