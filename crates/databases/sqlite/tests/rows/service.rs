//! Opening, closing, waiting for others, running out of space.

use std::time::Duration;

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Verdict};
use windrow_database::Driver;
use windrow_database::{Options, Synchronous};
use windrow_sqlite::Sqlite;

use crate::support::*;

async fn open(url: &str) -> Result<(), windrow_core::Fault> {
    let sink = Driver::open(&Sqlite, url, &Options::default()).await?;
    sink.connect(Purpose::LockWait).await?;
    sink.ping().await
}

#[tokio::test]
async fn opens_or_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| format!("sqlite:{}/{name}", dir.path().display());
    open(&at("new.db")).await.unwrap();
    open(&at("new.db?mode=rw")).await.unwrap();
    open("sqlite::memory:").await.unwrap();
    for (name, part) in [
        ("none/x.db", "does not exist; create it first"),
        ("other.db?mode=rw", "mode=rw forbids"),
        ("", "is a directory"),
        ("x.db?cache=shared", "a parameter \"cache\""),
    ] {
        let fault = open(&at(name)).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::Invalid, "{name}");
        assert!(fault.message.contains(part), "{fault}");
    }
    std::fs::write(
        dir.path().join("text"),
        "certainly not a database".repeat(99),
    )
    .unwrap();
    let fault = open(&at("text")).await.unwrap_err();
    assert_eq!(&*fault.code, "XX001");
    assert!(fault.message.contains("cannot be opened"), "{fault}");
}

#[tokio::test]
async fn profile_and_settings_are_as_promised() {
    let options = Options {
        synchronous: Synchronous::Normal,
        ..Options::default()
    };
    let mut db = Db::with("CREATE TABLE t (a TEXT)", &options).await;
    let profile = db.sink.profile().clone();
    assert_eq!(
        (profile.name, profile.transactional, profile.flights),
        ("SQLite", true, 1)
    );
    assert_eq!(db.rows("PRAGMA journal_mode"), ["'wal'"]);
    db.one(insert("t", &["a"]).write(["x".into()]))
        .await
        .unwrap();
    let path = db.path();
    assert!(path.with_extension("db-wal").exists());
    let Db { dir, batches } = db;
    batches.executor.close().await;
    drop(batches.sink);
    // The writer has ended: the log is in the file.
    assert!(!path.with_extension("db-wal").exists());
    assert_eq!(
        rows(
            &rusqlite::Connection::open(&path).unwrap(),
            "SELECT a FROM t"
        ),
        ["'x'"]
    );
    drop(dir);
}

#[tokio::test]
async fn memory_lives_as_long_as_the_sink() {
    let sink = Driver::open(&Sqlite, "sqlite::memory:", &creating())
        .await
        .unwrap();
    let mut one = sink.connect(Purpose::Batches).await.unwrap();
    let mut other = sink.connect(Purpose::LockWait).await.unwrap();
    one.execute(&[insert("t", &["id"]).unit([1.into()])]).await;
    let report = other.execute(&[get("t").unit([1.into()])]).await;
    assert!(matches!(&report.verdicts[0], Verdict::Final(Ok(dones)) if dones[0].rows == 1));
}

#[tokio::test]
async fn a_lock_held_elsewhere_means_again() {
    let options = Options {
        lock_wait: Duration::from_millis(20),
        ..Options::default()
    };
    let mut db = Db::with("CREATE TABLE t (id INTEGER PRIMARY KEY)", &options).await;
    let other = db.look();
    other
        .execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
        .unwrap();
    let into = insert("t", &["id"]);
    let report = db
        .run(&[into.unit([1.into()]), into.unit([2.into()])])
        .await;
    assert!(report.usable);
    for verdict in &report.verdicts {
        let Verdict::RolledBack(fault) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!((fault.class, &*fault.code), (FaultClass::Conflict, "55P03"));
    }
    // Reading needs no lock, and the writer is alive.
    let read = db.outcomes(&[get("t").unit([1.into()])]).await;
    assert_eq!(brief(&read), ["[0]"]);
    db.sink.ping().await.unwrap();
    other.execute_batch("COMMIT").unwrap();
    let outcomes = db
        .outcomes(&[into.unit([1.into()]), into.unit([2.into()])])
        .await;
    assert_eq!(brief(&outcomes), ["23505@0", "[1]"]);
}

#[tokio::test]
async fn two_executors_and_many_tasks_share_the_writer() {
    let db = Db::new("CREATE TABLE t (id INTEGER PRIMARY KEY)").await;
    let mut tasks = Vec::new();
    for task in 0..20_i64 {
        let mut executor = db.sink.connect(Purpose::Batches).await.unwrap();
        tasks.push(tokio::spawn(async move {
            let into = insert("t", &["id"]);
            for i in 0..10 {
                let report = executor
                    .execute(&[into.unit([(task * 10 + i).into()])])
                    .await;
                assert!(matches!(&report.verdicts[0], Verdict::Final(Ok(_))));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(db.rows("SELECT count(*) FROM t"), ["200"]);
}

/// A file that is deleted under way takes with it only what was told to be in doubt: the next batch
/// finds a new one.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_deleted_is_made_anew() {
    let mut db = Db::creating().await;
    db.one(insert("t", &["a"]).write([1.into()])).await.unwrap();
    std::fs::remove_file(db.path()).unwrap();
    db.one(insert("t", &["a"]).write([2.into()])).await.unwrap();
    assert_eq!(db.rows("SELECT a FROM t"), ["2"]);
}

/// A directory in which nobody can create a file, not even root.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn where_nothing_can_be_written_the_start_is_refused() {
    let sink = Driver::open(&Sqlite, "sqlite:/proc/windrow.db", &creating()).await;
    let fault = match sink {
        Ok(sink) => sink.ping().await.unwrap_err(),
        Err(fault) => fault,
    };
    assert_eq!(fault.class, FaultClass::Denied, "{}", fault.message);
    assert!(
        fault.message.contains("cannot be written"),
        "{}",
        fault.message
    );
}

/// Nobody but its owner reads a file that Windrow makes; one that is there keeps its mode.
#[cfg(unix)]
#[tokio::test]
async fn a_new_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        let data = std::fs::metadata(dir.path().join(name)).unwrap();
        data.permissions().mode() & 0o777
    };
    let there = dir.path().join("there.db");
    std::fs::write(&there, "").unwrap();
    std::fs::set_permissions(&there, std::fs::Permissions::from_mode(0o640)).unwrap();
    for (name, expected) in [("new.db", 0o600), ("there.db", 0o640)] {
        let url = format!("sqlite:{}/{name}", dir.path().display());
        let sink = Driver::open(&Sqlite, &url, &creating()).await.unwrap();
        let mut batches = windrow_testkit::batches::Batches::on(sink).await;
        let row = insert("t", &["id"]).unit([1.into()]);
        batches.one(row).await.unwrap();
        for file in ["", "-wal", "-shm"] {
            assert_eq!(mode(&format!("{name}{file}")), expected, "{name}{file}");
        }
    }
}
