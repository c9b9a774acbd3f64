//! Loads that are ended from outside.

use std::io::Write;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Db, READINGS, Said, reading, readings};

/// Waits until a condition holds.
#[track_caller]
fn wait_for(what: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !what() {
        assert!(started.elapsed().as_secs() < 60, "it never came");
        std::thread::yield_now();
    }
}

#[test]
fn an_interrupt_says_how_to_go_on() {
    let db = Db::sqlite();
    db.exec(READINGS);
    let arguments = [
        "-",
        "-t",
        "readings",
        "--resume-as",
        "pipe",
        "--batch-rows",
        "100",
    ];
    let mut child = db
        .command(&arguments)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than the reader gathers before it hands a portion out; the end of the file does not
    // come.
    let text = readings(40_000);
    stdin.write_all(text.as_bytes()).unwrap();
    wait_for(|| db.number("select count(*) from readings") >= 1000);
    let pid = i32::try_from(child.id()).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
    let said = Said::of(child);
    said.is(
        130,
        &["stopping", "interrupted", "the same command goes on"],
    );
    drop(stdin);
    let before = db.number("select count(*) from readings");
    let said = db.load_stdin(&arguments, text.as_bytes());
    said.is(
        0,
        &["rows written", &format!("{before} done by an earlier run")],
    );
    db.holds(1..=40_000);
}

#[test]
fn a_database_that_never_comes_is_told() {
    let db = Db::sqlite();
    let file = db.file("readings.csv", readings(10));
    // Nothing listens there: the port is free again once its listener is gone.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("postgres://nobody@127.0.0.1:{port}/nothing");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windrow"));
    command
        .env_clear()
        .args(["load", &file, "-t", "t", "--to", &url]);
    command.args(["--away-wait", "200ms", "--log", "error"]);
    let said = Said::of(command.stderr(Stdio::piped()).spawn().unwrap());
    said.is(1, &["200", "away-wait"]);
}

#[test]
fn a_file_that_somebody_else_holds_is_waited_for_as_a_database_that_is_away() {
    let db = Db::sqlite();
    db.exec(READINGS);
    let file = db.file("readings.csv", readings(10));
    let other = rusqlite::Connection::open(db.path("test.db")).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let said = db.load(&[&file, "-t", "readings", "--away-wait", "200ms"]);
    said.is(1, &["200", "away-wait", "holds the database"]);
    other.execute_batch("rollback").unwrap();
    db.load(&[&file, "-t", "readings"]).is(0, &["10 rows"]);
}

/// A row that the next file brings too is told as what it is, and the first file stays.
#[test]
fn files_before_a_bad_one_stay() {
    let db = Db::sqlite();
    db.exec(READINGS);
    let first = db.file("first.csv", readings(100));
    let header = "id,station,level,note,at\n";
    let second = db.file("second.csv", format!("{header}{}\"open", reading(101)));
    let said = db.load(&[&first, &second, "-t", "readings"]);
    said.is(1, &["second.csv, line", "101 rows were written before"]);
    db.holds(1..=101);
}
