//! What needs a hand on the writer's own connection: a disk that is full.

use windrow_core::shape::ShapeParts;
use windrow_core::{
    FaultClass, Key, OnConflict, Op, Returning, TableName, Unit, UnitOutcome, Value, Verdict, Write,
};

use super::*;
use crate::executor::sql::TableRules;

fn session() -> Session {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        .unwrap();
    Session::new(connection, TableRules::default())
}

fn limit_pages(session: &Session, pages: i64) {
    let sql = format!("PRAGMA max_page_count = {pages}");
    session
        .connection()
        .query_row(&sql, [], |_| Ok(()))
        .unwrap();
}

fn count(session: &Session) -> i64 {
    let sql = "SELECT count(*) FROM t";
    session
        .connection()
        .query_row(sql, [], |row| row.get(0))
        .unwrap()
}

fn units(sizes: &[usize]) -> Packed {
    let shape = Arc::new(Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare("t"),
        columns: ["v".into()].into(),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    }));
    let unit = |size: &usize| {
        let value: Value = "x".repeat(*size).into();
        Unit::one(Write::new(shape.clone(), [value]))
    };
    let mut packed = Packed::default();
    packed.fill(&sizes.iter().map(unit).collect::<Vec<_>>());
    packed
}

fn told(report: Report) -> Vec<UnitOutcome> {
    let told = |verdict| match verdict {
        Verdict::Final(outcome) => outcome,
        other => panic!("not told: {other:?}"),
    };
    report.verdicts.into_iter().map(told).collect()
}

#[test]
fn a_full_disk_hits_those_that_do_not_fit() {
    let mut session = session();
    limit_pages(&session, 20);
    // One in the middle is larger than the whole disk.
    let outcomes = told(session.execute(&units(&[10, 200_000, 10, 200_000, 10])));
    for (i, outcome) in outcomes.iter().enumerate() {
        if i % 2 == 0 {
            assert!(outcome.is_ok(), "{i}: {outcome:?}");
        } else {
            let fault = &outcome.as_ref().unwrap_err().fault;
            assert_eq!(
                (fault.class, &*fault.code),
                (FaultClass::Unavailable, "53100")
            );
            assert!(fault.message.contains("free some space"), "{fault}");
        }
    }
    assert_eq!(count(&session), 3);
}

#[test]
fn service_goes_on_when_there_is_room_again() {
    let mut session = session();
    limit_pages(&session, 20);
    let many = units(&[3000; 200]);
    let outcomes = told(session.execute(&many));
    let fine = outcomes.iter().filter(|o| o.is_ok()).count();
    assert!(fine > 0 && fine < 200, "{fine}");
    // What was told is what is there.
    assert_eq!(count(&session), i64::try_from(fine).unwrap());
    limit_pages(&session, 10_000);
    let outcomes = told(session.execute(&many));
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(count(&session), i64::try_from(fine).unwrap() + 200);
}

#[cfg(unix)]
#[test]
fn what_is_written_into_a_deleted_file_is_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let location = Location::File {
        path: path.clone(),
        create: true,
    };
    let options = Options {
        create_tables: true,
        ..Options::default()
    };
    let mut session = Session::open(&location, &options, &Arc::default()).unwrap();
    assert!(
        told(session.execute(&units(&[1])))
            .iter()
            .all(Result::is_ok)
    );
    std::fs::remove_file(&path).unwrap();
    let report = session.execute(&units(&[1, 1]));
    assert!(!report.usable);
    for outcome in told(report) {
        let fault = outcome.unwrap_err().fault;
        assert_eq!(fault.class, FaultClass::Unknown);
        assert!(
            fault.message.contains("deleted or replaced"),
            "{}",
            fault.message
        );
    }
}
