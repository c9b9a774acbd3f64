//! `windrow spool`: looked into while a gateway works on it, and when it is damaged.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use windrow_testkit::command::CommandOutput;

use crate::support::{Db, Gateway, spool, windrow};

fn look(verb: &str, directory: &Path, more: &[&str]) -> CommandOutput {
    let directory = directory.to_str().unwrap();
    windrow(&[&["spool", verb, "--directory", directory], more].concat())
}

fn lines(told: &CommandOutput) -> Vec<Json> {
    let lines = told.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spool_is_shown_while_it_is_in_use() {
    let (db, directory) = (Db::sqlite(), spool());
    db.sql("create table readings (id int primary key, note varchar(100))");
    let gateway = Gateway::start(&db.url(), directory.path());
    let rows: Vec<_> = (0..30)
        .map(|id| json!({"id": id, "note": "a \"b\""}))
        .collect();
    assert_eq!(gateway.rows("readings", &rows).await.0, 202);
    let keyed = "readings?on_conflict=update&key=id";
    assert_eq!(
        gateway
            .rows(keyed, &[json!({"id": 1, "note": null})])
            .await
            .0,
        202
    );
    gateway.level().await;
    let told = look("status", directory.path(), &["--json", "--to", &db.url()]).ends(0);
    let status = &lines(&told)[0];
    let partition = &status["partitions"][0];
    assert_eq!(
        (&partition["end"], &partition["applied"]),
        (&json!(31), &json!(31))
    );
    let told = look("status", directory.path(), &["--to", &db.url()]).ends(0);
    assert!(
        told.out
            .contains("the database has all before 31; 0 are waiting"),
        "{}",
        told.out
    );
    let told = look("verify", directory.path(), &[]).ends(0);
    assert!(told.out.contains("as they were written"), "{}", told.out);
    let told = look("dump", directory.path(), &["--from", "29", "--limit", "5"]).ends(0);
    let dumped = lines(&told);
    assert_eq!(dumped.len(), 2, "{}", told.out);
    assert_eq!(dumped[0]["position"], 29);
    assert!(dumped[0]["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        dumped[0]["writes"],
        json!([{"table": "readings", "op": "insert", "values": {"id": 29, "note": "a \"b\""}}])
    );
    assert_eq!(
        dumped[1]["writes"],
        json!([{"table": "readings", "op": "insert", "on_conflict": "update", "key": ["id"], "values": {"id": 1, "note": null}}])
    );
    gateway.stop();
}

/// The file of entries.
fn segment(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory.join("0000")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    files
        .find(|path| path.extension().is_some_and(|e| e == "log"))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_told_and_nothing_is_started_on_it() {
    let (db, directory) = (Db::sqlite(), spool());
    db.sql("create table readings (id int)");
    let gateway = Gateway::start(&db.url(), directory.path());
    for id in 0..20 {
        assert_eq!(gateway.rows("readings", &[json!({"id": id})]).await.0, 202);
    }
    gateway.stop();
    let file = segment(directory.path());
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let told = look("verify", directory.path(), &[]).ends(3);
    assert!(told.out.contains("damaged"), "{}", told.out);
    let told = look("verify", directory.path(), &["--json"]).ends(3);
    assert!(lines(&told)[0]["partitions"][0]["damage"].is_string());
    let told = look("dump", directory.path(), &[]).ends(3);
    assert!(lines(&told).len() >= 18 && told.err.contains("damaged"));
    let place = directory.path().to_str().unwrap();
    let told = windrow(&[
        "serve",
        "--http",
        "127.0.0.1:0",
        "--to",
        &db.url(),
        "--spool",
        place,
    ]);
    assert_eq!(told.status, 1);
    let last = told.err.lines().last().unwrap();
    assert!(
        last.contains("error: ") && last.contains("windrow spool verify"),
        "{last}"
    );
}

#[test]
fn where_no_spool_is_none_is_shown() {
    let directory = spool();
    look("status", directory.path(), &[]).fails_with("is no spool");
    look("dump", &directory.path().join("x"), &[]).fails_with("there is no directory");
    assert_eq!(windrow(&["spool", "status"]).status, 2);
}
