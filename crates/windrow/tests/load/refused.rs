//! Rows that are refused: told with their true line and reason, kept as they were, and all others
//! are in.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::support::{Db, reading};

/// A file with every kind of bad row, and the line and code of each.
fn file() -> (Vec<u8>, BTreeMap<u64, &'static str>) {
    let mut bytes = b"id,station,level,note,at\n".to_vec();
    let (mut line, mut bad) = (2, BTreeMap::new());
    for id in 1..=2000_u64 {
        let (row, code): (&[u8], _) = match id {
            100 => (b"x100,S,1,,\n", "22P02"),
            200 => (b"17,S,1,again,\n", "23505"),
            300 => (b"300,S,5000,,\n", "23514"),
            400 => (b"400,,1,,\n", "23502"),
            500 => (b"500,S,1\n", "22P04"),
            600 => (b"600,S,1,bad \xff\xfe,\n", "22P04"),
            700 => (b"700,S,1,nul \0,\n", "22P04"),
            800 => (b"800,S,1,\"two\nlines\",at,and more\n", "22P04"),
            _ => (b"", ""),
        };
        if code.is_empty() {
            let good = reading(id);
            bytes.extend_from_slice(good.as_bytes());
            line += good.matches('\n').count() as u64;
        } else {
            bad.insert(line, code);
            bytes.extend_from_slice(row);
            line += row.iter().filter(|b| **b == b'\n').count() as u64;
        }
    }
    (bytes, bad)
}

const BAD: [u64; 8] = [100, 200, 300, 400, 500, 600, 700, 800];

fn good() -> impl Iterator<Item = u64> {
    (1..=2000).filter(|id| !BAD.contains(id))
}

fn reasons(db: &Db, name: &str) -> Vec<Json> {
    let text = db.text(name);
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

fn every_reason_is_told(db: &Db, type_code: &'static str) {
    db.exec(&db.strict());
    let (bytes, mut bad) = file();
    for code in bad.values_mut().filter(|code| **code == "22P02") {
        *code = type_code;
    }
    let file = db.file("readings.csv", bytes);
    let said = db.load(&[&file, "-t", "readings", "--rejects", "bad.csv"]);
    said.is(
        3,
        &[
            "1992 rows written, 8 refused",
            "bad.csv.reasons",
            "line 115: ",
        ],
    );
    db.holds(good());
    let reasons = reasons(db, "bad.csv.reasons");
    let told: BTreeMap<u64, &str> = reasons
        .iter()
        .map(|r| (r["line"].as_u64().unwrap(), r["code"].as_str().unwrap()))
        .collect();
    assert_eq!(told, bad, "{reasons:?}");
    assert!(reasons.iter().all(|r| r["file"] == file.as_str()));
    // Rows and reasons stand in the same order, and the rows can be corrected and loaded.
    let rows = std::fs::read(db.path("bad.csv")).unwrap();
    let at = |n: usize| usize::try_from(reasons[n]["ends_at"].as_u64().unwrap()).unwrap();
    let duplicate = reasons.iter().position(|r| r["code"] == "23505").unwrap();
    let from = duplicate
        .checked_sub(1)
        .map_or("id,station,level,note,at\n".len(), at);
    assert_eq!(&rows[from..at(duplicate)], b"17,S,1,again,\n");
    let mut corrected = String::from("id,station,level,note,at\n");
    for id in BAD {
        corrected.push_str(&reading(id));
    }
    let corrected = db.file("corrected.csv", corrected);
    db.load(&[&corrected, "-t", "readings"])
        .is(0, &["8 rows written"]);
    db.holds(1..=2000);
}

/// A refusal names the column and how its value begins; what a value holds does nothing to a
/// terminal.
fn values_are_named(db: &Db, types: &str) {
    db.exec(&format!(
        "create table v (id int primary key, n int, {types})"
    ));
    let long = "x".repeat(100);
    let file = db.file(
        "v.csv",
        format!("id,n,short,day\n1,\u{1b}[31mred,a,2024-01-05\n2,2,{long},2024-01-05\n3,3,c,2024-13-01\n4,4,d,2024-01-05\n"),
    );
    let said = db.load(&[&file, "-t", "v", "--rejects", "v.bad"]);
    let cut = format!("column short has \"{}...\"", "x".repeat(40));
    said.is(
        3,
        &[
            "1 rows written, 3 refused",
            "column n has \"\\u{1b}[31mred\"",
            &cut,
            "column day has \"2024-13-01\"",
        ],
    );
    assert!(!said.text.contains('\u{1b}'), "{:?}", said.text);
    let reasons = reasons(db, "v.bad.reasons");
    let told = |line: u64| {
        let reason = reasons
            .iter()
            .find(|reason| reason["line"] == line)
            .unwrap();
        (
            reason["column"].as_str().unwrap(),
            reason["value"].as_str().unwrap(),
        )
    };
    assert_eq!(told(2), ("n", "\u{1b}[31mred"));
    assert_eq!(told(4), ("day", "2024-13-01"));
    db.exec("drop table v");
}

#[test]
fn values_are_named_postgres() {
    values_are_named(&Db::postgres(), "short varchar(9), day date");
}

#[test]
fn values_are_named_mariadb() {
    values_are_named(&Db::mariadb(), "short varchar(9), day date");
}

#[test]
fn sqlite() {
    let db = Db::sqlite();
    every_reason_is_told(&db, "22P02");
    kept_rows_are_not_overwritten(&db);
    max_rejects_ends_the_load(&db);
}

#[test]
fn postgres() {
    let db = Db::postgres();
    every_reason_is_told(&db, "22P02");
    max_rejects_ends_the_load(&db);
}

#[test]
fn mariadb() {
    every_reason_is_told(&Db::mariadb(), "22P02");
}

fn kept_rows_are_not_overwritten(db: &Db) {
    let file = db.file("few.csv", "id,station,level\n5000,S,1\n");
    let before = db.text("bad.csv");
    let said = db.load(&[&file, "-t", "readings", "--rejects", "bad.csv"]);
    said.is(1, &["bad.csv", "is there already"]);
    assert_eq!(db.text("bad.csv"), before);
    // A file of rejects that has nothing in it is not there.
    db.load(&[&file, "-t", "readings", "--rejects", "none.csv"])
        .is(0, &["1 rows written"]);
    assert!(!db.path("none.csv").exists() && !db.path("none.csv.reasons").exists());
}

fn max_rejects_ends_the_load(db: &Db) {
    db.exec("delete from readings");
    let mut text = String::from("id,station,level\n");
    for id in 1..=3000 {
        let level = if id % 2 == 0 { 5000 } else { 1 };
        text.push_str(&format!("{id},S,{level}\n"));
    }
    let file = db.file("half.csv", text);
    // With one job, portions are written in the order of the file, and so the first refused line is
    // told.
    let mut arguments = vec![&*file, "-t", "readings", "--max-rejects", "20"];
    arguments.extend(["--batch-rows", "100", "--jobs", "1"]);
    let said = db.load(&arguments);
    said.is(1, &["--max-rejects is 20", "line 3: ", "run it again"]);
    assert!(db.number("select count(*) from readings") < 1000);
    db.exec("delete from readings");
    let said = db.load(&[&file, "-t", "readings", "--max-rejects", "1500"]);
    said.is(
        3,
        &["1500 rows written, 1500 refused", "not shown one by one"],
    );
}
