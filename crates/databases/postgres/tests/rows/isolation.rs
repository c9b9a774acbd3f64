//! What fails is set apart, at little cost to the rest.

use windrow_core::{FaultClass, Rung, Unit};

use crate::support::*;
use windrow_testkit::row;

#[tokio::test]
async fn one_bad_row_in_a_thousand_fails_alone() {
    let mut bed = Bed::new("create table t (id int primary key, a int check (a < 1000))").await;
    let shape = insert("t", &["id", "a"]).shape();
    let units: Vec<Unit> = (0..1000)
        .map(|n| unit(&shape, row![n, if n == 421 { 5000 } else { 1 }]))
        .collect();
    let report = bed.run(&units).await;
    assert!(report.tally.round_trips < 12, "{:?}", report.tally);
    for (n, verdict) in report.verdicts.into_iter().enumerate() {
        let outcome = told(verdict);
        if n == 421 {
            assert_eq!(fault(&outcome).constraint(), Some("t_a_check"));
        } else {
            assert_eq!(outcome.unwrap()[0].rows, 1);
        }
    }
    assert_eq!(bed.sql("select count(*) from t"), "999");
}

#[tokio::test]
async fn a_batch_of_nothing_but_failures_takes_few_round_trips() {
    let mut bed = Bed::new("create table t (id int primary key, a int check (a < 0))").await;
    let shape = insert("t", &["id", "a"]).shape();
    let units: Vec<Unit> = (0..600).map(|n| unit(&shape, row![n, 1])).collect();
    let report = bed.run(&units).await;
    assert!(report.tally.round_trips < 40, "{:?}", report.tally);
    let failed = report.verdicts.into_iter().map(told);
    assert!(
        failed
            .into_iter()
            .all(|o| fault(&o).class == FaultClass::Check)
    );
}

#[tokio::test]
async fn duplicates_are_told_apart_in_one_statement() {
    let mut bed = Bed::new(
        "create table t (id int primary key, email text unique);
         insert into t select g, 'mail' || g from generate_series(0, 999, 100) g;
         insert into t values (-5, 'old')",
    )
    .await;
    let shape = insert("t", &["id", "email"]).shape();
    let mut units: Vec<Unit> = (0..1000)
        .map(|n| unit(&shape, row![n, format!("mail{n}")]))
        .collect();
    units.push(unit(&shape, row![5000, "old"]));
    units.push(unit(&shape, row![-5, "other"]));
    let report = bed.run(&units).await;
    assert!(report.tally.round_trips <= 5, "{:?}", report.tally);
    assert_eq!(rung(&report, Rung::Fused), 990, "{:?}", report.tally);
    let outcomes: Vec<_> = report.verdicts.into_iter().map(told).collect();
    for (n, outcome) in outcomes.iter().enumerate() {
        if n % 100 == 0 || n >= 1000 {
            let fault = fault(outcome);
            assert_eq!((fault.class, &*fault.code), (FaultClass::Unique, "23505"));
            assert!(fault.detail().is_some_and(|d| d.contains("already exists")));
        } else {
            assert!(outcome.is_ok(), "{n}: {outcome:?}");
        }
    }
    assert_eq!(fault(&outcomes[1000]).constraint(), Some("t_email_key"));
    assert_eq!(fault(&outcomes[1001]).constraint(), Some("t_pkey"));
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
}

#[tokio::test]
async fn constraints_that_are_checked_at_the_commit_fail_only_their_own_unit() {
    let mut bed = Bed::new(
        "create table parent (id int primary key); insert into parent values (1);
         create table t (id int primary key, p int references parent deferrable initially deferred);
         create table u (id int primary key deferrable initially deferred)",
    )
    .await;
    let child = insert("t", &["id", "p"]).shape();
    let late = insert("u", &["id"]).shape();
    let mut units: Vec<Unit> = (0..50)
        .map(|n| unit(&child, row![n, if n == 17 { 9 } else { 1 }]))
        .collect();
    units.extend((0..10).map(|n| unit(&late, row![n / 9 * n])));
    let outcomes = bed.outcomes(&units).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match n {
            17 => assert_eq!(fault(outcome).class, FaultClass::ForeignKey),
            0..=50 | 59 => assert!(outcome.is_ok(), "{n} {outcome:?}"),
            _ => assert_eq!(fault(outcome).class, FaultClass::Unique, "{n}"),
        }
    }
    assert_eq!(
        bed.sql("select (select count(*) from t), (select count(*) from u)"),
        "49|2"
    );
}

#[tokio::test]
async fn what_keeps_failing_is_told_apart_at_once_and_recovers() {
    let mut bed = Bed::new("create table t (id int primary key)").await;
    let shape = insert("t", &["id"]).shape();
    let batch = |from: i32, duplicate: bool| -> Vec<Unit> {
        let first = if duplicate { 0 } else { from };
        let ids = std::iter::once(first).chain(from + 1..from + 50);
        ids.map(|id| unit(&shape, row![id])).collect()
    };
    bed.succeed(&batch(0, false)).await;
    let mut trips = Vec::new();
    for round in 1..8 {
        let report = bed.run(&batch(round * 1000, true)).await;
        trips.push(report.tally.round_trips);
    }
    assert_eq!(trips.last(), Some(&2), "{trips:?}");
    for round in 8..20 {
        let report = bed.run(&batch(round * 1000, false)).await;
        trips.push(report.tally.round_trips);
    }
    assert_eq!(trips.last(), Some(&1), "{trips:?}");
}

#[tokio::test]
async fn checks_and_foreign_keys_are_told_apart_in_one_statement() {
    let mut bed = Bed::new(
        "create schema other; create table other.\"Parent\" (\"A\" int, b text, primary key (\"A\", b));
         insert into other.\"Parent\" select g, 'x' from generate_series(0, 9) g;
         create table keyed (id int primary key, \"p a\" int, pb text, n numeric(6,2) default 1, ts timestamptz,
           foreign key (\"p a\", pb) references other.\"Parent\", check (n < 100 and (id > 0 or n is null)), check (ts > '2000-01-01'));
         create table bare (a int check (a > 0), b text[] check (cardinality(b) < 3))",
    )
    .await;
    let keyed = insert("keyed", &["id", "p a", "pb", "n", "ts"]).shape();
    let bare = insert("bare", &["a", "b"]).shape();
    let good = |n: i32| unit(&keyed, row![n, n % 10, "x", 5, "2020-01-01"]);
    let mut units: Vec<Unit> = (1..300).map(good).collect();
    units.push(unit(&keyed, row![301, 11, "x", 5, None::<&str>]));
    units.push(unit(&keyed, row![302, 1, "y", 5, None::<&str>]));
    units.push(unit(&keyed, row![303, 1, None::<&str>, 5, None::<&str>]));
    units.push(unit(&keyed, row![304, 1, "x", 100, None::<&str>]));
    units.push(unit(&keyed, row![0, 1, "x", 1, None::<&str>]));
    units.push(unit(&keyed, row![305, 1, "x", 1, "1999-01-01"]));
    units.push(good(7));
    for n in 0..300 {
        let b = if n == 9 { "[1,2,3]" } else { "[\"a\"]" };
        units.push(unit(&bare, vec![n.into(), json(b)]));
    }
    let report = bed.run(&units).await;
    assert!(report.tally.round_trips <= 6, "{:?}", report.tally);
    assert_eq!(rung(&report, Rung::Fused), 598, "{:?}", report.tally);
    let failed: Vec<_> = (1..)
        .zip(report.verdicts)
        .filter_map(|(n, verdict)| {
            let fault = told(verdict).err()?.fault;
            Some((n, fault.constraint().unwrap().to_owned()))
        })
        .collect();
    let expected = [
        (300, "keyed_p a_pb_fkey"),
        (301, "keyed_p a_pb_fkey"),
        (303, "keyed_check"),
        (304, "keyed_check"),
        (305, "keyed_ts_check"),
        (306, "keyed_pkey"),
        (307, "bare_a_check"),
        (316, "bare_b_check"),
    ];
    assert_eq!(failed, expected.map(|(n, name)| (n, name.to_owned())));
}
