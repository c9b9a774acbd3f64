//! A database that is away, as the metrics show it for the lanes of SQL clients.

use std::thread;
use std::time::{Duration, Instant};

use windrow_testkit::pgclient::backend;
use windrow_testkit::postgres::Postgres;

use crate::load::TABLE;
use crate::support::{Gateway, TEST_TIMEOUT, ok};
use crate::unread::http;

/// Waits until the metrics have a line that begins and ends with two texts.
fn until_shown(gateway: &Gateway, (begin, end): (&str, &str)) {
    let start = Instant::now();
    let is_shown = || {
        let text = http(gateway, "/metrics");
        text.lines()
            .any(|line| line.starts_with(begin) && line.ends_with(end))
    };
    while !is_shown() {
        assert!(start.elapsed() < TEST_TIMEOUT, "{begin}.. {end}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_lane_without_traffic_shows_that_its_database_is_away() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let mut client = gateway.client();
    ok(
        &mut client,
        "insert into readings (id, note) values (1, 'x')",
    );
    let lane = format!("windrow_database_away{{lane=\"{}/", gateway.direct.database);
    until_shown(&gateway, (&lane, " 0"));
    gateway.server.kill9().unwrap();
    until_shown(&gateway, (&lane, " 1"));
    gateway.server.restart().unwrap();
    until_shown(&gateway, (&lane, " 0"));
}

#[test]
fn statements_that_an_outage_refuses_are_counted() {
    let gateway = Gateway::with(Postgres::builder(), &["--away-wait", "100ms"]);
    gateway.exec(TABLE);
    let mut client = gateway.client();
    let insert = "insert into readings (id, note) values (1, 'x')";
    ok(&mut client, insert);
    gateway.server.stop().unwrap();
    for statement in [insert, "select count(*) from readings"] {
        let answer = client.query(statement).unwrap();
        assert!(backend::sqlstate(&answer).is_some(), "{statement}");
    }
    let text = http(&gateway, "/metrics");
    for (metric, of) in [
        ("windrow_outcomes_total", gateway.direct.database.as_str()),
        ("windrow_pg_refusals_total", ""),
    ] {
        let is_counted = |line: &str| {
            line.starts_with(metric)
                && line.contains(of)
                && line.contains("class=\"unavailable\"")
                && !line.ends_with(" 0")
        };
        assert!(text.lines().any(is_counted), "{metric}: {text}");
    }
}
