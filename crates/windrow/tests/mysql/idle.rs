//! Sessions and lanes of which one side is idle.

use std::time::{Duration, Instant};

use windrow_testkit::mariadb::MariaDb;

use crate::raw::first_row;
use crate::support::{Gateway, TEST_TIMEOUT, metric};

/// The time after which the server ends an idle connection, in seconds.
const WAIT_TIMEOUT: u64 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_writes_is_not_timed_out() {
    let builder = MariaDb::builder().set("wait-timeout", &WAIT_TIMEOUT.to_string());
    let gateway = Gateway::with(builder, &[]);
    gateway.exec("create table t (id int auto_increment primary key)");
    let mut client = gateway.client().await;
    let begun = Instant::now();
    let mut written = 0;
    while begun.elapsed() < Duration::from_secs(2 * WAIT_TIMEOUT) {
        client.ok("insert into t () values ()").await;
        written += 1;
    }
    gateway.joins();
    let there = client.ok("select count(*) from t").await;
    assert_eq!(first_row(&there), [written.to_string()]);
}

/// The metrics show that the server is away also in the lane of a client that writes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_lane_shows_that_its_server_is_away() {
    let gateway = Gateway::start();
    gateway.exec("create table t (id int primary key)");
    let mut client = gateway.client().await;
    for id in 1..4 {
        client.ok(&format!("insert into t values ({id})")).await;
    }
    gateway.joins();
    gateway.server.kill9().unwrap();
    let begun = Instant::now();
    // The default lane, and the client's.
    while metric(gateway.windrow.address(), "windrow_database_away") < 2 {
        assert!(begun.elapsed() < TEST_TIMEOUT, "one lane shows nothing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
