//! What is refused at the start, with what to do.

use std::net::TcpListener;

use serde_json::json;
use windrow_testkit::command;

use crate::support::{Db, Gateway, draining, program, spool, windrow};

#[test]
fn settings_that_make_no_sense_are_refused() {
    windrow(&["serve", "--to", "sqlite::memory:", "--ack", "spool"]).fails_with("--spool DIR");
    windrow(&["serve", "--to", "sqlite::memory:", "--drain-only"]).fails_with("--spool DIR");
    let told = windrow(&["serve", "--ack", "sometimes"]);
    assert_eq!(told.status, 2, "{}", told.err);
}

/// Databases without transactions over several tables are named, and so are those that have them.
#[test]
fn a_database_that_cannot_have_a_spool_is_refused() {
    let directory = spool();
    // Nobody answers there: it is not even asked.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let place = directory.path().join("spool");
    for (url, name) in [
        (format!("crate://127.0.0.1:{port}/doc"), "CrateDB"),
        (format!("arangodb://127.0.0.1:{port}/_system"), "ArangoDB"),
    ] {
        let mut serve = command::command(program());
        serve
            .args(["serve", "--http", "127.0.0.1:0", "--to", &url, "--spool"])
            .arg(&place);
        let told = command::run(&mut serve);
        assert_eq!(told.status, 1, "{}", told.err);
        let last = told.err.lines().last().unwrap();
        assert!(
            last.contains(name) && last.contains("postgres://"),
            "{last}"
        );
        assert!(!last.contains("crate"), "{last}");
    }
    assert!(!place.exists(), "nothing was made");
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
