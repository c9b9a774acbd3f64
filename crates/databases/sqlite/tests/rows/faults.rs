//! Each unit its own error, and nobody else's.

use windrow_core::{FaultClass, Rung, Unit};

use crate::support::*;

const SCHEMA: &str = "
    CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE t (
        id INTEGER PRIMARY KEY,
        u TEXT UNIQUE,
        must TEXT NOT NULL DEFAULT 'x',
        n INTEGER CONSTRAINT n_positive CHECK (n > 0),
        parent INTEGER REFERENCES parent,
        twice INTEGER GENERATED ALWAYS AS (n * 2)
    );
    CREATE TABLE guarded (id INTEGER PRIMARY KEY, how TEXT);
    CREATE TRIGGER guard BEFORE INSERT ON guarded BEGIN
        SELECT CASE new.how
            WHEN 'abort' THEN RAISE(ABORT, 'no entry')
            WHEN 'rollback' THEN RAISE(ROLLBACK, 'all out')
            WHEN 'fail' THEN RAISE(FAIL, 'failed')
            WHEN 'ignore' THEN RAISE(IGNORE) END;
    END;
    CREATE TABLE late (
        id INTEGER PRIMARY KEY,
        parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED
    );
    CREATE TABLE fierce (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK);";

#[tokio::test]
async fn constraints_are_named() {
    let mut db = Db::new(SCHEMA).await;
    let units = [
        insert("t", &["id", "u"]).unit([1.into(), "a".into()]),
        insert("t", &["id"]).unit([1.into()]),
        insert("t", &["u"]).unit(["a".into()]),
        insert("t", &["must"]).unit([windrow_core::Value::Null]),
        insert("t", &["n"]).unit([0.into()]),
        insert("t", &["parent"]).unit([99.into()]),
        insert("t", &["twice"]).unit([4.into()]),
        insert("guarded", &["how"]).unit(["abort".into()]),
        insert("nowhere", &["a"]).unit([1.into()]),
        insert("other.t", &["a"]).unit([1.into()]),
        insert("pragma_table_list", &["a"]).unit([1.into()]),
        insert("t", &["nope"]).unit([1.into()]),
        insert("guarded", &["how"]).unit(["ignore".into()]),
        insert("t", &["id"]).unit([2.into()]),
    ];
    let report = db.run(&units).await;
    assert_eq!(
        (report.tally.commits, report.tally.rungs),
        (1, [0, 0, 14, 0])
    );
    let outcomes = db.outcomes(&units[1..]).await;
    assert_eq!(
        brief(&outcomes),
        [
            "23505@0", "23505@0", "23502@0", "23514@0", "23503@0", "428C9@0", "P0001@0", "42P01@0",
            "42P01@0", "42P01@0", "42703@0", "[0]", "23505@0"
        ]
    );
    let fault = |i: usize| &outcomes[i].as_ref().unwrap_err().fault;
    assert_eq!(
        (fault(0).constraint(), fault(0).table(), fault(0).column()),
        (Some("t.id"), Some("t"), Some("id"))
    );
    assert_eq!(fault(1).constraint(), Some("t.u"));
    assert_eq!(
        (fault(2).class, fault(2).column()),
        (FaultClass::NotNull, Some("must"))
    );
    assert_eq!(fault(3).constraint(), Some("n_positive"));
    assert_eq!(fault(4).class, FaultClass::ForeignKey);
    assert_eq!(
        (fault(6).class, &*fault(6).message),
        (FaultClass::Check, "no entry")
    );
}

#[tokio::test]
async fn one_bad_row_in_many_fails_alone() {
    let mut db = Db::new(SCHEMA).await;
    let into = insert("t", &["id", "n"]);
    let unit = |i: i64| into.unit([i.into(), i64::from(i != 500).into()]);
    let units: Vec<Unit> = (0..1000).map(unit).collect();
    let outcomes = db.outcomes(&units).await;
    for (i, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.is_ok(), i != 500, "{i}: {outcome:?}");
    }
    assert_eq!(db.rows("SELECT count(*) FROM t"), ["999"]);
}

#[tokio::test]
async fn what_rolls_everything_back_harms_nobody_else() {
    let mut db = Db::new(SCHEMA).await;
    let into = insert("guarded", &["id", "how"]);
    let fierce = insert("fierce", &["id"]);
    let units = [
        into.unit([1.into(), "fine".into()]),
        into.unit([2.into(), "rollback".into()]),
        into.unit([3.into(), "fine".into()]),
        fierce.unit([1.into()]),
        fierce.unit([1.into()]),
        Unit::of([
            into.write([4.into(), "fine".into()]),
            into.write([5.into(), "rollback".into()]),
        ]),
        into.unit([6.into(), "fail".into()]),
        into.unit([7.into(), "fine".into()]),
        into.unit([7.into(), "fine".into()]),
    ];
    let report = db.run(&units).await;
    assert!(report.tally.rungs[Rung::Isolated as usize] > 0);
    let told: Vec<_> = report
        .verdicts
        .into_iter()
        .map(|v| match v {
            windrow_core::Verdict::Final(outcome) => outcome,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        brief(&told),
        [
            "[1]", "P0001@0", "[1]", "[1]", "23505@0", "P0001@1", "P0001@0", "[1]", "23505@0"
        ]
    );
    assert_eq!(&*told[1].as_ref().unwrap_err().fault.message, "all out");
    assert_eq!(db.rows("SELECT id FROM guarded"), ["1", "3", "7"]);
    assert_eq!(db.rows("SELECT id FROM fierce"), ["1"]);
}

#[tokio::test]
async fn a_commit_that_fails_finds_the_guilty() {
    let mut db = Db::new(SCHEMA).await;
    db.look()
        .execute_batch("INSERT INTO parent VALUES (1)")
        .unwrap();
    let into = insert("late", &["id", "parent"]);
    let bad = [3, 40, 41, 99];
    let unit = |i: i64| into.unit([i.into(), (1 + i64::from(bad.contains(&i))).into()]);
    let units: Vec<Unit> = (0..100).map(unit).collect();
    let outcomes = db.outcomes(&units).await;
    for (i, outcome) in outcomes.iter().enumerate() {
        if bad.contains(&(i as i64)) {
            assert_eq!(code(outcome), "23503", "{i}");
        } else {
            assert_eq!(counts(outcome), [1], "{i}");
        }
    }
    assert_eq!(db.rows("SELECT count(*) FROM late"), ["96"]);
    // Alone, it is the same.
    let outcomes = db.outcomes(&[unit(3)]).await;
    assert_eq!(brief(&outcomes), ["23503@0"]);
}

#[tokio::test]
async fn a_unit_heals_its_own_deferred_violation() {
    let mut db = Db::new(SCHEMA).await;
    let unit = Unit::of([
        insert("late", &["id", "parent"]).write([1.into(), 5.into()]),
        insert("parent", &["id"]).write([5.into()]),
    ]);
    assert_eq!(brief(&db.outcomes(&[unit]).await), ["[1, 1]"]);
}
