//! The connection for describing ends while something is asked on it.

use std::time::Duration;

use windrow_core::{Described, Describer};
use windrow_database::Options;
use windrow_testkit::writes::eventually;

use crate::parsed::insert;
use crate::support::Bed;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_is_asked_again_on_another_one() {
    let options = Options {
        lock_wait: Duration::from_secs(60),
        ..Options::default()
    };
    let bed = Bed::waiting("create table t (id int primary key)", &[], &[], &options).await;
    let (holds, connection) = tokio_postgres::connect(bed.database.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    for sql in ["begin", "lock table t"] {
        holds.batch_execute(sql).await.unwrap();
    }
    let (sink, parsed) = (bed.sink.clone(), insert("t", "id", "$1").parsed());
    let asked = tokio::spawn(async move { sink.describe(&parsed).await });
    let waits =
        "from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    eventually("the question waits for the table", || {
        bed.sql(&format!("select count(*) {waits}")) == "1"
    })
    .await;
    bed.sql(&format!("select pg_terminate_backend(pid) {waits}"));
    holds.batch_execute("commit").await.unwrap();
    let described = asked.await.unwrap().unwrap();
    assert!(matches!(described, Described::Joined(_)), "{described:?}");
}
