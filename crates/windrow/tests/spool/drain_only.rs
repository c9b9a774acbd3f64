//! `windrow serve --drain-only`: applies what is in the spool, and ends.

use std::io::{BufRead, BufReader};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use windrow_testkit::command;
use windrow_testkit::postgres::{Postgres, psql};

use crate::support::{Db, Gateway, draining, spool};

async fn filled(url: &str, directory: &std::path::Path, stopped: impl FnOnce()) {
    let gateway = Gateway::start(url, directory);
    stopped();
    let rows: Vec<_> = (0..300).map(|id| json!({"id": id})).collect();
    let (status, answer) = gateway.rows("readings", &rows).await;
    assert_eq!(status, 202, "{answer}");
    gateway.kill9();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_waits_for_the_database_and_ends_when_all_is_there() {
    let server = Postgres::start().unwrap();
    server.exec("create table readings (id int)").unwrap();
    let directory = spool();
    filled(&server.url(), directory.path(), || server.stop().unwrap()).await;
    let url = server.url();
    // A signal ends it while it waits; all of it stays.
    let (status, said) = ended_by_a_signal(&mut draining(&url, directory.path()));
    assert_eq!(status, Some(130), "{said}");
    assert!(
        said.contains("300 entries of the spool are not in the database yet"),
        "{said}"
    );
    server.restart().unwrap();
    let told = command::run(&mut draining(&url, directory.path())).ends(0);
    assert!(
        told.err
            .contains("the database has all that was in the spool"),
        "{}",
        told.err
    );
    let counted = psql(&url, "select count(*), count(distinct id) from readings");
    assert_eq!(counted.unwrap().trim_end(), "300|300");
    // Nothing is left, and nothing is done twice.
    let told = command::run(&mut draining(&url, directory.path())).ends(0);
    assert!(told.err.contains("0 entries applied"), "{}", told.err);
    let counted = psql(&url, "select count(*) from readings");
    assert_eq!(counted.unwrap().trim_end(), "300");
}

/// Starts it, and tells it to end once it has said what it found.
fn ended_by_a_signal(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    while let Some(Ok(line)) = lines.next() {
        said.push_str(&line);
        said.push('\n');
        if line.contains("entries kept") {
            let pid = Pid::from_raw(child.id().try_into().unwrap());
            kill(pid, Signal::SIGTERM).unwrap();
        }
    }
    (child.wait().unwrap().code(), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_entries_are_counted() {
    let (db, directory) = (Db::sqlite(), spool());
    db.sql("create table readings (id int check (id <> 7))");
    let held = db.open();
    let hold = || held.execute_batch("begin immediate").unwrap();
    filled(&db.url(), directory.path(), hold).await;
    held.execute_batch("commit").unwrap();
    let told = command::run(&mut draining(&db.url(), directory.path())).ends(0);
    assert!(
        told.err.contains("1 of them as dead letters"),
        "{}",
        told.err
    );
    assert_eq!(db.sql("select count(*) from readings"), "299");
}

#[test]
fn where_no_spool_is_none_is_made() {
    let (db, directory) = (Db::sqlite(), spool());
    let place = directory.path().join("spool");
    let told = command::run(&mut draining(&db.url(), &place));
    assert_eq!(told.status, 1);
    assert!(told.err.contains("there is no spool"), "{}", told.err);
    assert!(!place.exists());
}
