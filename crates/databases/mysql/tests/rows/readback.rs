//! Rows that a server without RETURNING is asked for: the write's own, or nothing is written.

use windrow_core::{FaultClass, Unit};

use crate::support::*;
use windrow_testkit::row;

/// Asserts that each write is refused, by itself and in company, and that nothing was written.
async fn refused(bed: &mut Bed, put: &Make, row: fn(i64) -> Vec<windrow_core::Value>) {
    let units: Vec<Unit> = (0..3).map(|n| put.of(row(n))).collect();
    let before = bed.sql("select count(*) from t");
    let mut outcomes = bed.outcomes(&units[..1]).await;
    outcomes.extend(bed.outcomes(&units).await);
    outcomes.extend(
        bed.outcomes(&[Unit::of([put.row(row(8)), put.row(row(9))])])
            .await,
    );
    for outcome in &outcomes {
        let fault = fault(outcome);
        assert_eq!(
            (fault.class, &*fault.code),
            (FaultClass::Unsupported, "0A000"),
            "{fault:?}"
        );
    }
    assert_eq!(bed.sql("select count(*) from t"), before);
}

#[tokio::test]
async fn a_row_without_a_key_that_is_known_before_is_not_written() {
    let uuid = "create table t (id varbinary(36) primary key default (uuid()), v int)";
    let trigger = "create table t (id int primary key, v int);
      create trigger b before insert on t for each row set new.id = new.id + 1;
      insert into t values (99, 7)";
    for table in ["create table t (id int, v int)", uuid, trigger] {
        let mut bed = Bed::new(table).await;
        if server(&bed).0 {
            continue;
        }
        let put = match table.contains("uuid") {
            true => insert("t", &["v"]).all(),
            false => insert("t", &["id", "v"]).all(),
        };
        match table.contains("uuid") {
            true => refused(&mut bed, &put, |n| row![n]).await,
            false => refused(&mut bed, &put, |n| row![100 + n, n]).await,
        }
    }
}

#[tokio::test]
async fn an_update_whose_key_a_trigger_changes_gives_back_no_other_row() {
    let mut bed = Bed::new(
        "create table t (id int primary key, v int); insert into t values (1, 1), (2, 2);
         create trigger b before update on t for each row set new.id = new.id + 10",
    )
    .await;
    let set = update("t", &["v"]).all().shape();
    let outcome = bed.outcomes(&[unit(&set, row![5, 1])]).await.remove(0);
    assert_eq!(fault(&outcome).class, FaultClass::Unsupported);
    assert_eq!(bed.sql("select id, v from t order by id"), "1|1\n2|2");
}

#[tokio::test]
async fn a_key_that_the_server_rounds_is_undone_alone_and_leaves_its_company() {
    let mut bed = Bed::new("create table t (at datetime primary key, v int)").await;
    let put = insert("t", &["at", "v"]).all().shape();
    let units: Vec<Unit> = (0..10)
        .map(|n| {
            let fraction = if n == 4 { ".7" } else { "" };
            unit(
                &put,
                row![format!("2020-01-01 00:00:{:02}{fraction}", 3 * n), n],
            )
        })
        .collect();
    let mariadb = server(&bed).0;
    for (n, outcome) in (0_i64..).zip(&bed.outcomes(&units).await) {
        match (n, mariadb) {
            (4, false) => assert_eq!(fault(outcome).class, FaultClass::Unsupported),
            _ => assert_eq!(
                outcome.as_ref().unwrap()[0].returned.as_ref().unwrap().rows[0][1],
                n.into()
            ),
        }
    }
    let stored = if mariadb { "10|1" } else { "9|0" };
    assert_eq!(
        bed.sql("select count(*), coalesce(sum(v = 4), 0) from t"),
        stored
    );
}

#[tokio::test]
async fn zeros_and_nulls_are_read_back_by_their_number() {
    let mut bed = Bed::new("create table t (id int auto_increment primary key, v int)").await;
    let put = insert("t", &["id", "v"]).all().shape();
    let ids = [
        0.into(),
        windrow_core::Value::Null,
        "0".into(),
        number("0.2"),
        50.into(),
    ];
    let units: Vec<Unit> = (0..)
        .zip(ids)
        .map(|(n, id)| unit(&put, vec![id, n.into()]))
        .collect();
    for (n, done) in (0..).zip(bed.succeed(&units).await) {
        let rows = done.returned.unwrap().rows;
        assert_eq!((rows.len(), &rows[0][1]), (1, &n.into()));
        assert_ne!(rows[0][0], 0.into());
    }
    assert_eq!(bed.sql("select count(*) from t"), "5");
}

/// An audit trigger leaves the new row as it is.
#[tokio::test]
async fn triggers_that_leave_the_key_alone_keep_no_row_back() {
    let mut bed = Bed::new(
        "create table t (id int auto_increment primary key, v int); create table audit (id int, v int);
         create trigger b before insert on t for each row set @seen = 1, new.v = new.v + 1;
         create trigger a after insert on t for each row insert into audit values (new.id, new.v)",
    )
    .await;
    let put = insert("t", &["v"]).all().shape();
    let units: Vec<Unit> = (0..5).map(|n| unit(&put, row![n])).collect();
    for (n, done) in (0..).zip(bed.succeed(&units).await) {
        assert_eq!(done.returned.unwrap().rows[0][1], (n + 1).into());
    }
    assert_eq!(bed.sql("select count(*) from audit"), "5");
}
