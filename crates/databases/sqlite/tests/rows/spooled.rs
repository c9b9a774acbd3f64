//! What the one who applies a spool needs: units of many writes with the position that they move
//! on, and the tables for that.

use windrow_bookkeeping::{REJECTED, dead_letters, prepare};
use windrow_core::{Unit, Verdict};
use windrow_database::{Driver, Options};
use windrow_sqlite::Sqlite;
use windrow_testkit::batches::Batches;
use windrow_testkit::spooled::{self, Spooled};

use crate::support::*;

const TABLES: &str = "CREATE TABLE one (id INTEGER PRIMARY KEY, a TEXT);
    CREATE TABLE two (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);";

async fn start() -> (Spooled, Db) {
    let db = Db::new(TABLES).await;
    (Spooled::on(db.sink.clone()).await, db)
}

#[tokio::test]
async fn two_processes_do_not_both_apply() {
    let (mut spooled, db) = start().await;
    // Another sink has a writer of its own, as another process has.
    let url = format!("sqlite:{}", db.path().display());
    let sink = Driver::open(&Sqlite, &url, &Options::default())
        .await
        .unwrap();
    prepare(&*sink.bookkeeping().unwrap()).await.unwrap();
    let mut other = Batches::on(sink).await;
    let units: Vec<Unit> = (0..2)
        .map(|_| spooled.unit(None, 50, spooled.rows(0..50)))
        .collect();
    let (one, two) = tokio::join!(
        spooled.batches.executor.execute(&units[..1]),
        other.executor.execute(&units[1..])
    );
    let done = |verdict: &Verdict| matches!(verdict, Verdict::Final(Ok(_)));
    let reports = [one, two];
    let done = reports.iter().flat_map(|r| &r.verdicts).filter(|v| done(v));
    assert_eq!(done.count(), 1, "{reports:?}");
    assert_eq!(spooled.position().await, Some(50));
    assert_eq!(spooled.count(0..50).await, 50);
}

#[tokio::test]
async fn a_table_of_an_older_program_is_brought_up_to_date() {
    let db = Db::new(&format!(
        r#"CREATE TABLE {REJECTED} (id INTEGER PRIMARY KEY AUTOINCREMENT, moved_at TEXT NOT NULL DEFAULT 'now',
            source TEXT NOT NULL, destination TEXT NOT NULL, "key" JSON NOT NULL, "row" JSON NOT NULL, code TEXT NOT NULL,
            message TEXT NOT NULL, "constraint" TEXT);
        INSERT INTO {REJECTED} (moved_at, source, destination, "key", "row", code, message)
            VALUES ('2020-01-02T00:00:00Z', 's', 'd', '[1]', '{{}}', '23505', 'm'); {TABLES}"#
    ))
    .await;
    // Whoever only reads them finds them too.
    let bookkeeping = db.sink.bookkeeping().unwrap();
    let kept = dead_letters(&*bookkeeping, 0, 10).await.unwrap();
    assert!(kept[0].rejected_at.starts_with("2020-01-02"), "{kept:?}");
    assert_eq!(
        (&*kept[0].letter.source, &kept[0].letter.entry),
        ("s", &None)
    );
    let mut spooled = Spooled::on(db.sink.clone()).await;
    let letter = spooled::letter(Some("c"), Some(b"\\x00"));
    let unit = spooled.unit(None, 1, vec![letter.write()]);
    spooled.succeed(unit).await;
    assert_eq!(spooled.kept(1, 10).await[0].letter, letter);
}
