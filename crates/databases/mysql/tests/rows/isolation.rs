//! What fails is set apart, at little cost to the rest.

use windrow_core::{FaultClass, Rung, Unit};
use windrow_database::Driver;
use windrow_mysql::Mysql;

use crate::support::*;
use windrow_testkit::row;

#[tokio::test]
async fn one_bad_row_in_a_thousand_fails_alone() {
    for (bad, class, most) in [
        (5000, FaultClass::Check, 60),
        (100_000, FaultClass::Value, 40),
    ] {
        let mut bed = Bed::new(
            "create table t (id int primary key, a smallint, constraint few check (a < 1000))",
        )
        .await;
        let shape = insert("t", &["id", "a"]).shape();
        let units: Vec<Unit> = (0..1000)
            .map(|n| unit(&shape, row![n, if n == 421 { bad } else { 1 }]))
            .collect();
        let report = bed.run(&units).await;
        assert!(report.tally.round_trips < most, "{:?}", report.tally);
        for (n, verdict) in report.verdicts.into_iter().enumerate() {
            let outcome = told(verdict);
            if n == 421 {
                assert_eq!(fault(&outcome).class, class);
            } else {
                assert_eq!(outcome.unwrap()[0].rows, 1);
            }
        }
        assert_eq!(bed.sql("select count(*) from t"), "999");
    }
}

#[tokio::test]
async fn a_batch_of_nothing_but_failures_is_told_so() {
    let mut bed = Bed::new("create table t (id int primary key, a int check (a < 0))").await;
    let shape = insert("t", &["id", "a"]).shape();
    let units: Vec<Unit> = (0..300).map(|n| unit(&shape, row![n, 1])).collect();
    let report = bed.run(&units).await;
    assert!(report.tally.round_trips < 400, "{:?}", report.tally);
    for verdict in report.verdicts {
        assert_eq!(fault(&told(verdict)).class, FaultClass::Check);
    }
}

#[tokio::test]
async fn duplicates_are_told_apart_at_once() {
    let mut bed = Bed::new(
        "create table t (id int primary key, email varchar(50) unique);
         insert into t select seq * 100, concat('mail', seq * 100) from seq_0_to_9;
         insert into t values (-5, 'old')",
    )
    .await;
    let shape = insert("t", &["id", "email"]).shape();
    let mut units: Vec<Unit> = (0..1000)
        .map(|n| unit(&shape, row![n, format!("mail{n}")]))
        .collect();
    units.push(unit(&shape, row![5000, "OLD"]));
    units.push(unit(&shape, row![-5, "other"]));
    let report = bed.run(&units).await;
    assert!(report.tally.round_trips < 120, "{:?}", report.tally);
    assert!(rung(&report, Rung::Fused) > 980, "{:?}", report.tally);
    let outcomes: Vec<_> = report.verdicts.into_iter().map(told).collect();
    for (n, outcome) in outcomes.iter().enumerate() {
        if n % 100 == 0 || n >= 1000 {
            let fault = fault(outcome);
            assert_eq!((fault.class, &*fault.code), (FaultClass::Unique, "23505"));
        } else {
            assert!(outcome.is_ok(), "{n}: {outcome:?}");
        }
    }
    assert_eq!(fault(&outcomes[1000]).constraint(), Some("email"));
    assert_eq!(fault(&outcomes[1001]).constraint(), Some("PRIMARY"));
    assert_eq!(bed.sql("select count(*) from t"), "1001");
}

#[tokio::test]
async fn a_unit_of_several_writes_is_all_or_nothing_and_says_which_failed() {
    let mut bed = Bed::new("create table t (id int primary key, a int check (a < 100))").await;
    let shape = insert("t", &["id", "a"]).shape();
    let single = |id: i32| unit(&shape, row![id, 1]);
    let several = |rows: &[(i32, i32)]| {
        let writes = rows.iter().map(|(id, a)| write(&shape, row![*id, *a]));
        Unit::of(writes)
    };
    let mut units: Vec<Unit> = (0..10).map(single).collect();
    units.push(several(&[(100, 1), (101, 1), (5, 1), (102, 1)]));
    units.push(several(&[(200, 1), (201, 500)]));
    units.push(several(&[(300, 1), (301, 1)]));
    units.push(several(&[]));
    let outcomes = bed.outcomes(&units).await;
    assert!(outcomes[..10].iter().all(Result::is_ok));
    let (unique, check) = (&outcomes[10], &outcomes[11]);
    assert_eq!(unique.as_ref().unwrap_err().at, 2);
    assert_eq!(fault(unique).class, FaultClass::Unique);
    assert_eq!(check.as_ref().unwrap_err().at, 1);
    assert_eq!(fault(check).class, FaultClass::Check);
    assert_eq!(outcomes[12].as_ref().unwrap().len(), 2);
    assert_eq!(outcomes[13].as_ref().unwrap().len(), 0);
    assert_eq!(bed.sql("select count(*), max(id) from t"), "12|301");
    let big: Vec<(i32, i32)> = (1000..1500)
        .map(|id| (id, if id == 1333 { 500 } else { 1 }))
        .collect();
    let outcomes = bed.outcomes(&[several(&big)]).await;
    assert_eq!(outcomes[0].as_ref().unwrap_err().at, 333);
    assert_eq!(bed.sql("select count(*) from t"), "12");
}

/// A unit that fails and rows whose answers cannot be assigned need savepoints both.
#[tokio::test]
async fn a_unit_that_fails_beside_rounded_values_is_isolated() {
    let mut bed = Bed::new(
        "create table t (id bigint auto_increment primary key, d decimal(5,1)); create table k (id int primary key)",
    )
    .await;
    let (rounded, key) = (
        insert("t", &["d"]).all().shape(),
        insert("k", &["id"]).shape(),
    );
    let row = |n: i32| vec![number(&format!("{n}.06"))];
    let mut units: Vec<Unit> = (0..10).map(|n| unit(&rounded, row(n))).collect();
    units.push(Unit::of([write(&key, row![1]), write(&key, row![1])]));
    units.push(Unit::of((10..14).map(|n| write(&rounded, row(n)))));
    units.push(unit(&key, row![2]));
    let mut outcomes = bed.outcomes(&units).await;
    assert_eq!(outcomes.pop().unwrap().unwrap()[0].rows, 1);
    let failed = outcomes.remove(10).unwrap_err();
    assert_eq!((failed.at, failed.fault.class), (1, FaultClass::Unique));
    let dones = outcomes.into_iter().flat_map(Result::unwrap);
    for (n, done) in (0..14).zip(dones) {
        let stored = &done.returned.unwrap().rows[0][1];
        assert_eq!(stored, &number(&format!("{n}.1")));
    }
    assert_eq!(bed.sql("select count(*) from t"), "14");
    assert_eq!(bed.sql("select group_concat(id) from k"), "2");
}

#[tokio::test]
async fn tables_that_undo_nothing_take_single_writes_only() {
    let mut bed = Bed::new(
        "create table m (id int primary key, a int) engine=myisam; create table t (id int primary key, a int)",
    )
    .await;
    let loose = insert("m", &["id", "a"]).shape();
    let firm = insert("t", &["id", "a"]).shape();
    let mut units: Vec<Unit> = (0..12)
        .map(|n| unit(if n % 3 == 0 { &loose } else { &firm }, row![n, n]))
        .collect();
    units.push(unit(&loose, row![0, 0]));
    units.push(Unit::of([
        write(&loose, row![100, 1]),
        write(&loose, row![101, 1]),
    ]));
    let outcomes = bed.outcomes(&units).await;
    assert!(outcomes[..12].iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(fault(&outcomes[12]).class, FaultClass::Unique);
    assert_eq!(fault(&outcomes[13]).class, FaultClass::Unsupported);
    assert_eq!(
        bed.sql("select (select count(*) from m), (select count(*) from t)"),
        "4|8"
    );
}

#[tokio::test]
async fn batches_are_cut_by_what_the_server_takes_in_one_packet() {
    let server = windrow_testkit::mariadb::MariaDb::builder()
        .set("max-allowed-packet", "1M")
        .start()
        .unwrap();
    let url = server.create_database().unwrap();
    let sql = |text: &str| windrow_testkit::mariadb::sql(&url, text).unwrap();
    sql("create table t (id int primary key, body longtext)");
    let sink = Driver::open(&Mysql, &url, &windrow_database::Options::default())
        .await
        .unwrap();
    let mut executor = sink
        .connect(windrow_core::sink::Purpose::Batches)
        .await
        .unwrap();
    let shape = insert("t", &["id", "body"]).shape();
    let mut units: Vec<Unit> = (0..40)
        .map(|n| unit(&shape, row![n, "x".repeat(100_000)]))
        .collect();
    units.push(unit(&shape, row![40, "y".repeat(2_000_000)]));
    let report = executor.execute(&units).await;
    assert!(report.usable);
    let outcomes: Vec<_> = report.verdicts.into_iter().map(told).collect();
    assert!(outcomes[..40].iter().all(Result::is_ok), "{outcomes:?}");
    let refused = fault(&outcomes[40]);
    assert_eq!(refused.class, FaultClass::TooLarge);
    assert!(refused.message.contains("max_allowed_packet"), "{refused}");
    let set = update("t", &["body"]).shape();
    let units: Vec<Unit> = (0..40)
        .map(|n| unit(&set, row!["z'\\".repeat(30_000), n]))
        .collect();
    for verdict in executor.execute(&units).await.verdicts {
        assert_eq!(told(verdict).unwrap()[0].rows, 1);
    }
    assert_eq!(
        sql("select count(*), min(length(body)), max(length(body)) from t"),
        "40|90000|90000"
    );
}

#[tokio::test]
async fn ten_thousand_rows_of_many_columns_keep_below_the_placeholders() {
    let columns: Vec<String> = (0..30).map(|n| format!("c{n}")).collect();
    let list = columns.join(" int, ");
    let mut bed = Bed::new(&format!("create table t (id int primary key, {list} int)")).await;
    let mut names: Vec<&str> = columns.iter().map(String::as_str).collect();
    names.insert(0, "id");
    let shape = insert("t", &names).shape();
    let units: Vec<Unit> = (0..10_000)
        .map(|id| unit(&shape, vec![id.into(); names.len()]))
        .collect();
    let report = bed.run(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 10_000, "{:?}", report.tally);
    assert!(report.tally.round_trips < 120, "{:?}", report.tally);
    assert_eq!(
        bed.sql("select count(*), sum(c29) from t"),
        "10000|49995000"
    );
}
