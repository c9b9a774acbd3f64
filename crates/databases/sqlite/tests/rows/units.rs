//! Units of several writes: all or nothing.

use windrow_bookkeeping::{Marker, MarkerWrites};
use windrow_core::{Rung, Unit, Value};

use crate::support::*;

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
    CREATE TABLE guarded (id INTEGER PRIMARY KEY);
    CREATE TRIGGER guard BEFORE INSERT ON guarded BEGIN SELECT RAISE(FAIL, 'failed'); END;";

#[tokio::test]
async fn succeed_or_fail_together() {
    let mut db = Db::new(SCHEMA).await;
    let into = insert("t", &["id", "v"]);
    let row = |id: i64| into.write([id.into(), "x".into()]);
    let units = [
        Unit::of([row(1), row(2)]),
        Unit::of([row(3), row(1), row(4)]),
        Unit::of([]),
        Unit::of([row(5), update("t", &["v"]).write(["y".into(), 5.into()])]),
        Unit::of([row(6), insert("guarded", &["id"]).write([1.into()])]),
        Unit::of([row(7), insert("nowhere", &["id"]).write([1.into()])]),
        Unit::of([delete("t").write([2.into()]), get("t").write([2.into()])]),
        Unit::one(row(8)),
    ];
    let outcomes = db.outcomes(&units).await;
    assert_eq!(
        brief(&outcomes),
        [
            "[1, 1]", "23505@1", "[]", "[1, 1]", "P0001@1", "42P01@1", "[1, 0]", "[1]"
        ]
    );
    assert_eq!(db.rows("SELECT id, v FROM t"), ["1|'x'", "5|'y'", "8|'x'"]);
}

/// A row's marker is assigned or replaced only if it is still of the batch that was read. Only a
/// row that is written leaves a marker where there was none.
#[tokio::test]
async fn a_marker_that_changed_meanwhile_is_not_replaced() {
    let mut db = Db::new(
        "CREATE TABLE windrow_moved (move TEXT, \"key\" TEXT, batch TEXT, PRIMARY KEY (move, \"key\"))",
    )
    .await;
    let marker = |batch: &str| Marker {
        relocation: "m".into(),
        key: "k".into(),
        batch: batch.into(),
    };
    let writes = MarkerWrites::default();
    let replace = |old: &str, new: &str| Unit::of(writes.replace(old, &marker(new)));
    let assign = |old: &str, new: &str| Unit::one(writes.assign(old, &marker(new)));
    let remove = Unit::one(writes.remove_batch("m", "d"));
    for (unit, outcome, batch) in [
        (Unit::one(writes.insert(&marker("a"))), "[1]", "'a'"),
        (replace("a", "b"), "[1, 1]", "'b'"),
        (replace("a", "c"), "23505@1", "'b'"),
        (assign("b", "d"), "[1]", "'d'"),
        (assign("b", "e"), "[0]", "'d'"),
        (remove, "[1]", ""),
        (assign("d", "e"), "[0]", ""),
        (replace("d", "e"), "[0, 1]", "'e'"),
    ] {
        let outcomes = db.outcomes(&[unit]).await;
        assert_eq!(brief(&outcomes), [outcome]);
        let batches = db.rows("SELECT batch FROM windrow_moved").join(" ");
        assert_eq!(batches, batch);
    }
}

#[tokio::test]
async fn tally_tells_solo_from_grouped() {
    let mut db = Db::new(SCHEMA).await;
    let into = insert("t", &["v"]);
    let solo = db.run(&[into.unit(["a".into()])]).await.tally;
    assert_eq!(solo.rungs[Rung::Solo as usize], 1);
    assert_eq!((solo.commits, solo.round_trips), (1, 0));
    assert!(!solo.in_database.is_zero());
    let grouped = db
        .run(&[into.unit(["a".into()]), into.unit([Value::Null])])
        .await
        .tally;
    assert_eq!(grouped.rungs[Rung::Grouped as usize], 2);
    assert_eq!(grouped.commits, 1);
    let none = db.run(&[]).await;
    assert_eq!((none.verdicts.len(), none.tally.commits), (0, 0));
}

#[tokio::test]
async fn many_shapes_fit_into_one_batch() {
    let columns: Vec<String> = (0..400).map(|i| format!("c{i}")).collect();
    let mut db = Db::new(&format!("CREATE TABLE t ({})", columns.join(" INT, "))).await;
    let units: Vec<Unit> = (0..800)
        .map(|i| insert("t", &[&columns[i % 400]]).unit([(i as i64).into()]))
        .collect();
    let outcomes = db.outcomes(&units).await;
    assert!(outcomes.iter().all(|o| o.is_ok()));
    assert_eq!(db.rows("SELECT count(*), sum(c7) FROM t"), ["800|414"]);
}
