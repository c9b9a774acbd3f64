//! What the database refuses after it was acknowledged: kept, listed, shown, tried again, dropped.

use serde_json::{Value as Json, json};
use windrow_testkit::command::{self, CommandOutput, Running};
use windrow_testkit::mariadb::{self, MariaDb};
use windrow_testkit::postgres::psql;

use crate::support::{Db, Gateway, program, spool, windrow};

fn rejects(db: &Db, words: &[&str]) -> CommandOutput {
    let url = db.url();
    windrow(&[&["dead-letters"], words, &["--to", &url]].concat())
}

/// Letters as JSON.
fn letters(db: &Db) -> Vec<Json> {
    let told = rejects(db, &["list", "--json"]).ends(0);
    let lines = told.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn ids(db: &Db) -> Vec<String> {
    letters(db)
        .iter()
        .map(|letter| letter["id"].to_string())
        .collect()
}

const TABLE: &str =
    "create table readings (id int primary key, v int, constraint small check (v < 100))";

/// Rows of which every tenth is refused.
async fn refused(db: &Db) {
    db.sql(TABLE);
    let directory = spool();
    let gateway = Gateway::start(&db.url(), directory.path());
    let v = |id: i32| if id % 10 == 0 { 1000 + id } else { 1 };
    let rows: Vec<_> = (1..=60).map(|id| json!({"id": id, "v": v(id)})).collect();
    let (status, answer) = gateway.rows("readings", &rows).await;
    assert_eq!(status, 202, "{answer}");
    gateway.level().await;
    let spool = gateway.spool().await;
    assert_eq!(spool["totals"]["rejected"], 6, "{spool}");
    gateway.stop();
    assert_eq!(db.sql("select count(*) from readings"), "54");
}

async fn all_four_verbs(db: Db, without_check: &str) {
    refused(&db).await;
    let kept = letters(&db);
    assert_eq!(kept.len(), 6);
    let directory = spool();
    let gateway = Gateway::start(&db.url(), directory.path());
    gateway.shows_metric("windrow_dead_letters 6\n").await;
    gateway.stop();
    for (letter, id) in kept.iter().zip([10, 20, 30, 40, 50, 60]) {
        assert_eq!(letter["row"], json!({"id": id, "v": 1000 + id}));
        assert_eq!(
            (&letter["destination"], &letter["code"]),
            (&json!("readings"), &json!("23514"))
        );
        let source = letter["source"].as_str().unwrap();
        assert!(source.starts_with("spool ") && source.contains(" partition 0 position "));
    }
    let ids = ids(&db);
    // A table, and all of one.
    let told = rejects(&db, &["list"]).ends(0);
    assert_eq!(told.out.lines().count(), 7, "{}", told.out);
    let told = rejects(&db, &["list", "--limit", "2"]).ends(0);
    assert_eq!(told.out.lines().count(), 3, "{}", told.out);
    let told = rejects(&db, &["show", &ids[0]]).ends(0);
    assert!(told.out.contains("\"v\":1010") && told.out.contains("1 writes"));
    rejects(&db, &["show", "999999"]).ends(3);
    // Refused once more, all of it as it was.
    let told = rejects(&db, &["retry", &ids[0]]).ends(3);
    assert!(told.err.contains("is refused again"), "{}", told.err);
    assert_eq!(letters(&db), kept);
    // Dropped, and not there any more.
    rejects(&db, &["drop", &ids[0]]).ends(0);
    rejects(&db, &["drop", &ids[0]]).ends(3);
    // What kept them out is gone.
    db.sql(without_check);
    rejects(&db, &["retry", &ids[1], &ids[2]]).ends(0);
    assert_eq!(db.sql("select count(*) from readings"), "56");
    rejects(&db, &["retry", "--all"]).ends(0);
    assert_eq!(db.sql("select count(*), max(v) from readings"), "59|1060");
    assert_eq!(db.sql("select count(*) from windrow_rejected"), "0");
    rejects(&db, &["drop", "--all"]).ends(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_keeps_what_it_refuses() {
    let without = "alter table readings drop constraint small";
    all_four_verbs(Db::postgres(), without).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mariadb_keeps_what_it_refuses() {
    let without = "alter table readings drop constraint small";
    all_four_verbs(Db::mariadb(), without).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_what_it_refuses() {
    let without = "create table other (id int primary key, v int);
        insert into other select * from readings; drop table readings; alter table other rename to readings;";
    all_four_verbs(Db::sqlite(), without).await;
}

/// A row that the table of dead letters cannot take either: its entry is in a file, all that
/// follows goes on, and the file is tried again once there is room.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_no_letter_can_hold_is_in_a_file() {
    let server = MariaDb::builder()
        .set("max-allowed-packet", "4M")
        .start()
        .unwrap();
    let url = server.create_database().unwrap();
    let sql = |text: &str| mariadb::sql(&url, text).unwrap().trim().to_owned();
    sql("create table notes (id int primary key, note longtext)");
    let directory = spool();
    let gateway = Gateway::start(&url, directory.path());
    for (id, length) in [(1, 1), (2, 4_190_800), (3, 1)] {
        let row = json!({"id": id, "note": "x".repeat(length)});
        let (status, answer) = gateway.rows("notes", &[row]).await;
        assert_eq!(status, 202, "{answer}");
    }
    gateway.level().await;
    assert_eq!(gateway.spool().await["totals"]["rejected"], 1);
    gateway.stop();
    assert_eq!(sql("select group_concat(id order by id) from notes"), "1,3");
    let file = directory.path().join("rejected").join("0-1.entry");
    let file = file.to_str().unwrap();
    let told = windrow(&["dead-letters", "list", "--json", "--to", &url]).ends(0);
    let letter: Json = serde_json::from_str(&told.out).unwrap();
    assert!(letter["message"].as_str().unwrap().ends_with(file));
    assert_eq!(
        (&letter["code"], &letter["row"]),
        (&json!("54000"), &json!({}))
    );
    let id = letter["id"].to_string();
    let retry = |more: &[&str]| windrow(&[&["dead-letters", "retry", "--to", &url], more].concat());
    // Without the file it is known where that is; it is too large as before; no other file is it.
    assert!(retry(&[&id]).ends(3).err.contains(file));
    assert!(retry(&["--all"]).ends(3).err.contains(file));
    retry(&[&id, "--entry", file]).ends(3);
    let other = directory.path().join("0-0.entry");
    std::fs::copy(file, &other).unwrap();
    retry(&[&id, "--entry", other.to_str().unwrap()]).ends(3);
    retry(&[&id, "--entry", "not-there"]).ends(1);
    retry(&["--all", "--entry", file]).ends(2);
    // The server takes more.
    sql("set global max_allowed_packet = 16777216");
    retry(&[&id, "--entry", file]).ends(0);
    assert_eq!(
        sql("select length(note) from notes where id = 2"),
        "4190800"
    );
    assert_eq!(sql("select count(*) from windrow_rejected"), "0");
}

/// Two who try all of them again at the same time write nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn two_retries_at_once_write_each_once() {
    for db in [Db::postgres(), Db::mariadb(), Db::sqlite()] {
        refused(&db).await;
        // Without a key a second arrival would be seen.
        db.sql("drop table readings");
        db.sql("create table readings (id int, v int)");
        let url = db.url();
        let start = || {
            let mut retry = command::command(program());
            Running::start(retry.args(["dead-letters", "retry", "--all", "--to", &url]))
        };
        for told in [start(), start()].map(Running::end) {
            assert!(matches!(told.status, 0 | 3), "{}", told.err);
        }
        assert_eq!(db.counts("readings", "v").len(), 6);
        assert_eq!(db.sql("select count(*) from readings"), "6");
        assert_eq!(db.sql("select count(*) from windrow_rejected"), "0");
    }
}

/// Letters of a move have no entry: their rows go to the table that they were meant for.
#[test]
fn rows_of_a_move_are_tried_again() {
    let db = Db::postgres();
    db.sql(
        "create table pending (id int primary key, v numeric, note text, data bytea, j jsonb);
         create table final (id int, v numeric check (v < 100), note text, data bytea, j jsonb);
         insert into pending values (1, 1, 'a', null, null), (2, 1000.50, 'b \"c\"', '\\x00ff', '{\"a\": [1]}')",
    );
    let url = db.url();
    let moved = [
        "move",
        "--from",
        &url,
        "--source",
        "pending",
        "--destination",
        "final",
    ];
    windrow(&moved).ends(3);
    db.sql("alter table final drop constraint final_v_check");
    rejects(&db, &["retry", "--all"]).ends(0);
    assert_eq!(
        db.sql("select id, v, note, data, j from final order by id"),
        "1|1|a||\n2|1000.50|b \"c\"|\\x00ff|{\"a\": [1]}"
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let db = Db::sqlite();
    assert_eq!(rejects(&db, &["retry"]).status, 2);
    assert_eq!(rejects(&db, &["drop", "1", "--all"]).status, 2);
    windrow(&["dead-letters", "list", "--to", "cratedb://127.0.0.1:1/doc"])
        .fails_with("--spool DIR");
    // A database in which nothing was ever refused.
    db.sql("create table t (id integer)");
    let told = rejects(&db, &["list"]).ends(0);
    assert_eq!(told.out, "");
}

/// The command's name of version 0.1.
#[test]
fn the_old_name_is_still_a_command() {
    let db = Db::sqlite();
    db.sql("create table t (id integer)");
    windrow(&["rejects", "list", "--to", &db.url()]).ends(0);
}

/// A database whose encoding has few characters gets the name of a table that it cannot spell.
#[tokio::test]
async fn a_letter_is_kept_whatever_the_encoding() {
    let db = Db::postgres();
    let url = format!("{}_latin", db.url());
    let (_, name) = url.rsplit_once('/').unwrap();
    db.sql(&format!(
        "create database \"{name}\" template template0 encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'"
    ));
    psql(&url, "create table good (id int primary key)").unwrap();
    let directory = spool();
    let gateway = Gateway::start(&url, directory.path());
    for table in ["%F0%9F%98%80", "good"] {
        let (status, answer) = gateway.rows(table, &[json!({"id": 1})]).await;
        assert_eq!(status, 202, "{answer}");
    }
    gateway.level().await;
    gateway.stop();
    let letters = "select destination, \"row\" from windrow_rejected";
    assert_eq!(psql(&url, letters).unwrap().trim(), r"\u{1f600}|{}");
    assert_eq!(psql(&url, "select id from good").unwrap().trim(), "1");
    db.sql(&format!("drop database \"{name}\" with (force)"));
}
