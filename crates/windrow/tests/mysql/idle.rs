//! A session that writes by its lane is not idle, although its own server connection is.

use std::time::{Duration, Instant};

use windrow_testkit::mariadb::MariaDb;

use crate::raw::first_row;
use crate::support::Gateway;

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
