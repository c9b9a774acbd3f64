//! What is refused at the start, with what to do.

use serde_json::json;
use windrow_testkit::command;

use crate::support::{Db, Gateway, draining, spool, windrow};

#[test]
fn settings_that_make_no_sense_are_refused() {
    windrow(&["serve", "--to", "sqlite::memory:", "--ack", "spool"]).fails_with("--spool DIR");
    windrow(&["serve", "--to", "sqlite::memory:", "--drain-only"]).fails_with("--spool DIR");
    let told = windrow(&["serve", "--ack", "sometimes"]);
    assert_eq!(told.status, 2, "{}", told.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spool_is_one_gateways_own() {
    let (db, directory) = (Db::sqlite(), spool());
    let gateway = Gateway::start(&db.url(), directory.path());
    let told = command::run(&mut draining(&db.url(), directory.path()));
    assert_eq!(told.status, 1);
    assert!(
        told.err.contains("is in use by another process"),
        "{}",
        told.err
    );
    gateway.stop();
}

#[test]
fn a_directory_of_somebody_elses_is_not_taken() {
    let (db, directory) = (Db::sqlite(), spool());
    std::fs::write(directory.path().join("letter.txt"), "dear").unwrap();
    let told = command::run(&mut draining(&db.url(), directory.path()));
    assert_eq!(told.status, 1);
    assert!(told.err.contains("is no spool"), "{}", told.err);
}

/// A database that remembers entries which the spool does not have, or has no more: nothing is
/// applied, and everybody is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_time_stops_it() {
    let (db, directory) = (Db::sqlite(), spool());
    db.sql("create table readings (id int)");
    let gateway = Gateway::start(&db.url(), directory.path());
    assert_eq!(gateway.rows("readings", &[json!({"id": 1})]).await.0, 202);
    gateway.level().await;
    gateway.stop();
    db.sql("update windrow_progress set position = 1000");
    for more in [&[][..], &["--ack", "commit"]] {
        let gateway = Gateway::with(&db.url(), directory.path(), more);
        gateway
            .spool_until("it is stopped", |spool| spool["state"] == "stopped")
            .await;
        let (status, answer) = gateway.get("/readyz").await;
        assert_eq!(status, 503, "{answer}");
        let told = answer.to_string();
        assert!(told.contains("1000"), "{told}");
        gateway.stop();
    }
    let told = command::run(&mut draining(&db.url(), directory.path())).ends(1);
    assert!(told.err.contains("position 1000"), "{}", told.err);
    db.sql("update windrow_progress set position = 1");
    command::run(&mut draining(&db.url(), directory.path())).ends(0);
    assert_eq!(db.sql("select count(*) from readings"), "1");
}
