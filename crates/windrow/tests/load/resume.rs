//! `--resume`: whatever moment a load is killed at, no row is lost, none comes twice, and rejects
//! are exact.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use rand::RngExt;
use serde_json::Value as Json;

use crate::support::{Db, Said, reading, readings};

/// How often a load is killed: `WINDROW_TEST_KILLS` says more.
fn kills() -> usize {
    let asked = std::env::var("WINDROW_TEST_KILLS").ok();
    asked.map_or(10, |n| n.parse().unwrap())
}

const ROWS: u64 = 30_000;

fn is_bad(id: u64) -> bool {
    id.is_multiple_of(211) && id > 4000
}

/// Good rows, and bad ones of three kinds behind the first portions.
fn file() -> String {
    let mut text = String::from("id,station,level,note,at\n");
    for id in 1..=ROWS {
        match (is_bad(id), id % 3) {
            (false, _) => text.push_str(&reading(id)),
            (true, 0) => text.push_str(&format!("{id},S,5000,,\n")),
            (true, 1) => text.push_str(&format!("x{id},S,1,,\n")),
            (true, _) => text.push_str(&format!("{id},S\n")),
        }
    }
    text
}

fn killed_and_resumed(db: &Db, rounds: usize) {
    let file = db.file("readings.csv", file());
    let mut random = rand::rng();
    let (mut done, mut kills) = (0, 0);
    // A table without a key tells a row that comes twice.
    db.exec(&db.keyless());
    while kills < rounds {
        let arguments = [
            &*file,
            "-t",
            "readings",
            "--resume",
            "--rejects",
            "bad.csv",
            "--batch-rows",
            "500",
        ];
        let mut child = db.command(&arguments).spawn().unwrap();
        // Half of the kills come after some marks more, the others at any moment.
        let pause = random.random_range(0..200);
        sleep(Duration::from_millis(pause));
        match child.try_wait().unwrap() {
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
            }
            Some(status) => {
                let said = Said::of(child);
                assert_eq!(status.code(), Some(3), "{}", said.text);
                check(db, &file);
                done += 1;
                db.exec("delete from readings; delete from windrow_loads");
                for name in ["bad.csv", "bad.csv.reasons"] {
                    std::fs::remove_file(db.path(name)).ok();
                }
            }
        }
    }
    let arguments = [&*file, "-t", "readings", "--resume", "--rejects", "bad.csv"];
    let last = db.load(&arguments);
    assert_eq!(last.code, Some(3), "{last:?} after {done} whole loads");
    check(db, &file);
    db.load(&arguments).is(3, &["nothing to do", "earlier run"]);
    assert_eq!(
        db.number("select count(*) from windrow_loads where first_row = 0 and end_row = 30000"),
        1
    );
}

/// All that is good is in the table, once; all that is bad is in the rejects, once.
fn check(db: &Db, file: &str) {
    db.holds((1..=ROWS).filter(|id| !is_bad(*id)));
    let text = db.text("bad.csv.reasons");
    let reasons: Vec<Json> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let records: Vec<u64> = reasons
        .iter()
        .map(|r| r["record"].as_u64().unwrap() + 1)
        .collect();
    let distinct: BTreeSet<u64> = records.iter().copied().collect();
    assert_eq!(distinct.len(), records.len(), "a reject is there twice");
    assert!(distinct.into_iter().eq((1..=ROWS).filter(|id| is_bad(*id))));
    assert!(reasons.iter().all(|r| r["file"] == file));
    let rows = db.text("bad.csv");
    assert_eq!(rows.lines().count(), reasons.len() + 1);
}

#[test]
fn sqlite() {
    killed_and_resumed(&Db::sqlite(), kills());
}

#[test]
fn postgres() {
    killed_and_resumed(&Db::postgres(), kills());
}

#[test]
fn mariadb() {
    killed_and_resumed(&Db::mariadb(), kills());
}

#[test]
fn a_file_that_has_grown_is_loaded_further_and_another_one_is_not() {
    let db = Db::sqlite();
    db.exec(&db.keyless());
    let text = readings(1000);
    let file = db.file("readings.csv", &text);
    let arguments = [&*file, "-t", "readings", "--resume"];
    db.load(&arguments).is(0, &["1000 rows written"]);
    db.load(&arguments)
        .is(0, &["nothing to do", "all 1000 rows"]);
    db.file("readings.csv", readings(1500));
    db.load(&arguments)
        .is(0, &["500 rows written, 1000 done by an earlier run"]);
    db.holds(1..=1500);
    // Shorter than it was, and then another one.
    db.file("readings.csv", &text);
    db.load(&arguments)
        .is(1, &["1000 records", "1500", "--resume-as"]);
    db.file("readings.csv", text.replace("1,S1", "9,S1"));
    db.load(&arguments).is(1, &["has changed", "--resume-as"]);
    db.holds(1..=1500);
}

/// What comes on standard input is told from what came before as files are: by how it begins.
#[test]
fn other_input_under_the_same_name_is_refused() {
    let db = Db::sqlite();
    db.exec(&db.keyless());
    let arguments = ["-", "-t", "readings", "--resume-as", "pipe"];
    let text = readings(1000);
    db.load_stdin(&arguments, text.as_bytes())
        .is(0, &["1000 rows written"]);
    db.load_stdin(&arguments, text.as_bytes())
        .is(0, &["nothing to do"]);
    db.load_stdin(&arguments, readings(1200).as_bytes())
        .is(0, &["200 rows written, 1000 done by an earlier run"]);
    db.holds(1..=1200);
    db.load_stdin(&arguments, text.replace("1,S1", "9,S1").as_bytes())
        .is(1, &["standard input", "has changed", "--resume-as"]);
    db.holds(1..=1200);
}

/// A packed file is known by what is in it: the bytes of the archive change from its beginning on.
#[test]
fn a_packed_file_that_has_grown_is_loaded_further() {
    let db = Db::sqlite();
    db.exec(&db.keyless());
    let packed = |rows: u64| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, readings(rows).as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let file = db.file("readings.csv.gz", packed(1000));
    let arguments = [&*file, "-t", "readings", "--resume"];
    db.load(&arguments).is(0, &["1000 rows written"]);
    db.file("readings.csv.gz", packed(1500));
    db.load(&arguments)
        .is(0, &["500 rows written, 1000 done by an earlier run"]);
    db.holds(1..=1500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_transactions_says_what_to_do() {
    let stand_in = windrow_testkit::cratedb::CrateDb::start(1).await.unwrap();
    let db = Db::sqlite();
    let file = db.file("readings.csv", readings(10));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windrow"));
    command.args([
        "load",
        &file,
        "-t",
        "t",
        "--resume",
        "--to",
        &stand_in.url(),
    ]);
    let child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let said = tokio::task::spawn_blocking(move || Said::of(child))
        .await
        .unwrap();
    said.is(1, &["--resume is not available", "--on-conflict ignore"]);
}

/// A file that is still written may end in the middle of a line: that is no row yet.
fn half_written(db: &Db) {
    db.exec("create table h (id int, v varchar(20))");
    let all = "select id, v from h order by id, v";
    let file = db.file("h.csv", "id,v\n1,a\n2,b");
    let arguments = [&*file, "-t", "h", "--resume"];
    let told = "h.csv, line 3: the last line has no line end";
    db.load(&arguments).is(3, &["1 rows written", told]);
    db.load(&arguments).is(3, &["nothing to do", told]);
    assert_eq!(db.exec(all).trim_end(), "1|a");
    db.file("h.csv", "id,v\n1,a\n2,bcd\n3,\"x\ny");
    let told = "h.csv, line 4: the last line has no line end";
    db.load(&arguments).is(3, &["1 rows written", told]);
    db.file("h.csv", "id,v\n1,a\n2,bcd\n3,\"x\ny\"\n4,d\n");
    db.load(&arguments)
        .is(0, &["2 rows written, 2 done by an earlier run"]);
    assert_eq!(db.exec(all).trim_end(), "1|a\n2|bcd\n3|x\ny\n4|d");
    // An object has an end of its own.
    db.exec("delete from h");
    let file = db.file("h.ndjson", "{\"id\":1,\"v\":\"a\"}\n{\"id\":2,\"v\":\"b");
    let arguments = [&*file, "-t", "h", "--resume"];
    let told = "h.ndjson, line 2: the last line has no line end";
    db.load(&arguments).is(3, &["1 rows written", told]);
    db.file(
        "h.ndjson",
        "{\"id\":1,\"v\":\"a\"}\n{\"id\":2,\"v\":\"bcd\"}",
    );
    db.load(&arguments).is(0, &["1 rows written"]);
    assert_eq!(db.exec(all).trim_end(), "1|a\n2|bcd");
    // Whoever does not mean to go on has the whole file.
    db.exec("delete from h");
    let file = db.file("h.csv", "id,v\n1,a\n2,b");
    db.load(&[&file, "-t", "h"]).is(0, &["2 rows written"]);
}

#[test]
fn half_a_line_is_no_row_postgres() {
    half_written(&Db::postgres());
}

#[test]
fn half_a_line_is_no_row_mariadb() {
    half_written(&Db::mariadb());
}

#[test]
fn half_a_line_is_no_row_sqlite() {
    half_written(&Db::sqlite());
}
