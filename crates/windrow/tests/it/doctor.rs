//! What `windrow doctor` says of a database.

use tokio::process::Command;
use windrow_testkit::process::without_settings;

use crate::support::Db;

async fn doctor(url: &str, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
    without_settings(command.as_std_mut());
    let output = command
        .args(["doctor", "--to", url])
        .args(more)
        .output()
        .await
        .unwrap();
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code(), told.concat())
}

#[tokio::test]
async fn tables_are_told_by_what_their_writes_share() {
    let db = Db::postgres().await;
    db.run(
        "create table plain (id integer primary key, word text); create table seen (id integer primary key); \
         create table log (id integer); create table numbered (id serial primary key, word text); \
         create function note() returns trigger language plpgsql as 'begin insert into log values (new.id); return new; end'; \
         create trigger noted after insert on seen for each row execute function note()",
    )
    .await;
    let (status, told) = doctor(&db.url(), &[]).await;
    assert_eq!(status, Some(0), "{told}");
    assert!(
        told.contains(", 4 tables\n") && !told.contains("not looked at"),
        "{told}"
    );
    let joined = told.split("\njoined: ").nth(1).unwrap();
    let joined = joined.split("\n\n").next().unwrap();
    assert!(joined.contains("plain: insert"), "{told}");
    assert!(!joined.contains("seen: insert"), "{told}");
    let kept = joined.contains("numbered: insert, update, delete\n      kept in transactions");
    assert!(kept, "{told}");
    let given = "not kept in transactions: a unique key that is not generated";
    assert!(joined.contains(given), "{told}");
    assert!(told.contains("noted"), "the trigger is named: {told}");
    let rows = db
        .number("select (select count(*) from plain) + (select count(*) from seen)")
        .await;
    assert_eq!(rows, 0, "nothing is written");
}

/// SQLite's writes share a transaction at most, and its triggers stand in nobody's way.
#[tokio::test]
async fn tables_of_sqlite_are_told() {
    let db = Db::sqlite();
    db.run("create table plain (id integer primary key, word text)")
        .await;
    let (status, told) = doctor(&db.url(), &[]).await;
    assert_eq!(status, Some(0), "{told}");
    let grouped = told.split("\ngrouped: ").nth(1).unwrap();
    assert!(
        grouped.contains("  plain: insert, update, delete\n"),
        "{told}"
    );
}

#[tokio::test]
async fn statements_of_mysql_clients_are_listed() {
    let started = tokio::task::spawn_blocking(|| windrow_testkit::mariadb::shared().unwrap());
    let database = started.await.unwrap();
    let tables = "create table plain (id int primary key, word text); create table keyless (id int); \
         create table my (id int primary key) engine = myisam; create table fired (id int primary key); \
         create trigger noted after delete on fired for each row insert into keyless values (old.id); \
         create view seen as select id from plain; create table windrow_idempotency (id int)";
    database.exec(tables).unwrap();
    let (status, told) = doctor(database.url(), &[]).await;
    assert_eq!(status, Some(0), "{told}");
    let (joined, relayed) = told
        .split_once("\nclients of MySQL, joined: ")
        .unwrap()
        .1
        .split_once("\nclients of MySQL, relayed ")
        .unwrap();
    let all = "INSERT, INSERT IGNORE, ON DUPLICATE KEY UPDATE, REPLACE, UPDATE, DELETE\n";
    assert!(joined.contains(&format!("  plain: {all}")), "{told}");
    assert!(
        joined.contains("  fired: INSERT, INSERT IGNORE, UPDATE\n"),
        "{told}"
    );
    assert!(!told.contains("windrow_idempotency"), "{told}");
    for (table, reason) in [
        (
            "keyless: UPDATE, DELETE",
            "no unique key: table keyless\n      add a primary key\n",
        ),
        (
            &format!("my: {}", all.trim_end()),
            "another engine than InnoDB: table my\n      ALTER TABLE .. ENGINE = InnoDB\n",
        ),
        (
            "fired: ON DUPLICATE KEY UPDATE, REPLACE, DELETE",
            "a trigger that is not proven: trigger noted on fired",
        ),
    ] {
        let lines = format!("  {table}\n      {reason}");
        assert!(relayed.contains(&lines), "{lines} {told}");
    }
}

#[tokio::test]
async fn batching_is_measured_and_nothing_is_left() {
    let db = Db::postgres().await;
    let (status, told) = doctor(&db.url(), &["--measure"]).await;
    assert_eq!(status, Some(0), "{told}");
    assert!(
        told.contains("a row by itself takes ") && told.contains("times less"),
        "{told}"
    );
    let left = "select count(*) from pg_tables where tablename like 'windrow_doctor%'";
    assert_eq!(db.number(left).await, 0);
}

#[tokio::test]
async fn a_database_that_is_away_is_told() {
    let (status, told) = doctor("postgres://u:s3cret@127.0.0.1:1/d", &[]).await;
    assert_eq!(status, Some(1), "{told}");
    assert!(
        told.contains("127.0.0.1") && !told.contains("s3cret"),
        "{told}"
    );
}

/// A misspelt path is an error for all who only look: no empty database is made.
#[tokio::test]
async fn nothing_is_created_at_a_misspelt_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mispelt.db");
    let url = format!("sqlite:{}", path.display());
    let commands: [&[&str]; 3] = [
        &["doctor", "--to", &url],
        &["dead-letters", "list", "--to", &url],
        &[
            "move",
            "--from",
            &url,
            "--source",
            "t",
            "--destination",
            "u",
        ],
    ];
    for arguments in commands {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
        without_settings(command.as_std_mut());
        let output = command.args(arguments).output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(said.contains("mispelt.db does not exist"), "{said}");
        assert!(!path.exists(), "{arguments:?}");
    }
}
