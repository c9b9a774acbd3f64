//! The schema changes while writes are under way.

use windrow_core::{FaultClass, Unit};

use crate::support::*;

#[tokio::test]
async fn changes_by_another_process_are_seen() {
    let mut db = Db::new("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)").await;
    let with_b = insert("t", &["id", "b"]);
    assert!(
        db.one(insert("t", &["id", "a"]).write([1.into(), "x".into()]))
            .await
            .is_ok()
    );
    let fault = db
        .one(with_b.write([2.into(), "x".into()]))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::NoColumn);
    db.look()
        .execute_batch("ALTER TABLE t ADD COLUMN b BLOB")
        .unwrap();
    assert!(
        db.one(with_b.write([2.into(), "aGk=".into()]))
            .await
            .is_ok()
    );
    assert_eq!(db.rows("SELECT b FROM t WHERE id = 2"), ["x'6869'"]);
    // Another type under the same name.
    db.look()
        .execute_batch("ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN b TEXT")
        .unwrap();
    assert!(
        db.one(with_b.write([3.into(), "aGk=".into()]))
            .await
            .is_ok()
    );
    assert_eq!(db.rows("SELECT b FROM t WHERE id = 3"), ["'aGk='"]);
    let all = db.one(get("t").write([3.into()])).await.unwrap();
    assert_eq!(returned(&all)[0].len(), 3);
    db.look().execute_batch("DROP TABLE t").unwrap();
    let fault = db.one(get("t").write([3.into()])).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::NoTable);
}

#[tokio::test]
async fn columns_come_and_go_under_load() {
    let mut db = Db::new("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)").await;
    let path = db.path();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let altering = std::thread::spawn(move || {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection
            .busy_timeout(std::time::Duration::from_secs(20))
            .unwrap();
        let mut times = 0;
        while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
            connection
                .execute_batch("ALTER TABLE t ADD COLUMN extra TEXT DEFAULT 'd'")
                .unwrap();
            connection
                .execute_batch("ALTER TABLE t DROP COLUMN extra")
                .unwrap();
            times += 1;
        }
        times
    });
    let into = insert("t", &["id", "a"]).returning(&["a"]);
    let mut written = 0;
    for batch in 0..150_i64 {
        let units: Vec<Unit> = (0..20)
            .map(|i| into.unit([(batch * 20 + i).into(), "v".into()]))
            .collect();
        for verdict in db.run(&units).await.verdicts {
            match verdict {
                windrow_core::Verdict::Final(outcome) => {
                    assert_eq!(counts(&outcome), [1]);
                    written += 1;
                }
                // The other process held the lock for too long.
                windrow_core::Verdict::RolledBack(fault) => {
                    assert_eq!(fault.class, FaultClass::Conflict);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    drop(stop);
    assert!(altering.join().unwrap() > 0);
    assert_eq!(
        db.rows("SELECT count(*), count(a) FROM t"),
        [format!("{written}|{written}")]
    );
    assert!(written > 0);
}
