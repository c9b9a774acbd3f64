//! The PostgreSQL helper itself, against the installed server.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use windrow_testkit::postgres::{self, Postgres};
use windrow_testkit::procfs;

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn databases_are_separate_and_settings_arrive() {
    let server = Postgres::builder()
        .set("work_mem", "7MB")
        .fsync(true)
        .start()
        .unwrap();
    assert_eq!(server.exec("show work_mem; show fsync").unwrap(), "7MB\non");
    let a = server.create_database().unwrap();
    let b = server.create_database().unwrap();
    postgres::psql(&a, "create table t as select 1 as x, null::int as y").unwrap();
    assert_eq!(postgres::psql(&a, "select * from t").unwrap(), "1|");
    let error = postgres::psql(&b, "select * from t").unwrap_err();
    assert!(
        error.to_string().contains("relation \"t\" does not exist"),
        "{error}"
    );
    assert!(server.cpu_time() > Duration::ZERO);
}

#[test]
fn a_disk_can_be_slow_to_sync() {
    let server = Postgres::builder()
        .slow_fsync(Duration::from_millis(5))
        .start()
        .unwrap();
    server.exec("create table t (x int)").unwrap();
    let start = Instant::now();
    server
        .exec(&"insert into t values (1);".repeat(10))
        .unwrap();
    assert!(start.elapsed() >= Duration::from_millis(50));
    server.stop().unwrap();
    server.restart().unwrap();
    assert_eq!(
        server.exec("select count(*) from t; show fsync").unwrap(),
        "10\non"
    );
}

#[test]
fn committed_rows_survive_kill9_and_the_port_stays() {
    let server = Postgres::builder().fsync(true).start().unwrap();
    server
        .exec("create table t (x int); insert into t values (42)")
        .unwrap();
    let (url, old) = (server.url(), server.pids());
    server.kill9().unwrap();
    assert!(old.iter().all(|pid| !procfs::is_running(*pid)));
    assert!(server.pids().is_empty());
    assert!(server.exec("select 1").is_err());
    server.restart().unwrap();
    assert_eq!(server.url(), url);
    assert_eq!(server.exec("select x from t").unwrap(), "42");
}

#[test]
fn a_paused_server_answers_nothing_until_it_is_resumed() {
    let server = Postgres::start().unwrap();
    server.pause().unwrap();
    let states: Vec<_> = server
        .pids()
        .iter()
        .filter_map(|p| procfs::stat(*p))
        .collect();
    assert!(
        states.len() > 1 && states.iter().all(|s| s.state == 'T'),
        "{states:?}"
    );
    let url = server.url();
    let asked = thread::spawn(move || postgres::psql(&url, "select 1").unwrap());
    server.resume();
    assert_eq!(asked.join().unwrap(), "1");
}

#[test]
fn nothing_is_left_after_drop_even_while_paused() {
    let server = Postgres::start().unwrap();
    let (pids, dir) = (server.pids(), PathBuf::from(server.socket_folder()));
    server.pause().unwrap();
    drop(server);
    assert!(!dir.exists());
    eventually("all processes have ended", || {
        !pids.iter().any(|pid| procfs::is_running(*pid))
    });
}

/// The child of [`a_killed_test_leaves_no_server_behind`]: starts a server, says where, and waits
/// to be killed.
#[test]
fn holder() {
    if std::env::var_os("WINDROW_TEST_HOLDER").is_none() {
        return;
    }
    let server = Postgres::start().unwrap();
    println!(
        "holds {} {}",
        server.pids()[0],
        server.socket_folder().display()
    );
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_killed_test_leaves_no_server_behind() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder", "--nocapture"])
        .env("WINDROW_TEST_HOLDER", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines
        .map(Result::unwrap)
        .find_map(|line| Some(line.split_once("holds ")?.1.to_owned()))
        .unwrap();
    let (pid, dir) = line.split_once(' ').unwrap();
    let (pid, dir) = (pid.parse().unwrap(), PathBuf::from(dir));
    assert!(procfs::is_running(pid) && dir.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the server has ended", || !procfs::is_running(pid));
    eventually("its files are gone", || !dir.exists());
}

#[test]
fn a_shared_database_is_empty_and_of_its_own() {
    let (a, b) = (postgres::shared().unwrap(), postgres::shared().unwrap());
    assert_ne!(a.url(), b.url());
    a.exec("create table only_here (x int)").unwrap();
    let tables = "select count(*) from pg_tables where schemaname = 'public'";
    assert_eq!(a.exec(tables).unwrap(), "1");
    assert_eq!(b.exec(tables).unwrap(), "0");
}

#[test]
fn an_unusable_setting_is_reported_in_the_servers_words() {
    let error = Postgres::builder()
        .set("work_mem", "many")
        .start()
        .unwrap_err();
    assert!(error.to_string().contains("work_mem"), "{error}");
}

#[test]
fn a_password_can_be_asked_for() {
    let server = Postgres::builder()
        .hba("host all guarded 127.0.0.1/32 scram-sha-256")
        .start()
        .unwrap();
    server
        .exec("create role guarded login password 'right'")
        .unwrap();
    let url = |password| {
        format!(
            "postgres://guarded:{password}@127.0.0.1:{}/postgres",
            server.port()
        )
    };
    assert_eq!(postgres::psql(&url("right"), "select 1").unwrap(), "1");
    assert!(postgres::psql(&url("wrong"), "select 1").is_err());
}
