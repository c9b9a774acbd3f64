//! Marks are written with their rows or not at all.

use windrow_core::{LoadFault, Mark, Span};

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

fn mark(load: &str, first: u64, end: u64) -> Mark {
    Mark {
        load: load.into(),
        span: Span { first, end },
    }
}

#[tokio::test]
async fn a_mark_shares_the_fate_of_its_rows() {
    let bed = Bed::new("create table t (id int primary key);").await;
    let marks = bed.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    marks.prepare().await.unwrap();
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let written = loader
        .load(&texts(&[&["1"], &["2"]]), Some(&mark("l", 0, 2)))
        .await;
    assert_eq!(written.unwrap().written, 2);
    refused(
        loader
            .load(&texts(&[&["3"], &["2"]]), Some(&mark("l", 2, 4)))
            .await,
    );
    assert_eq!(
        loader
            .load(&texts(&[]), Some(&mark("l", 4, 6)))
            .await
            .unwrap()
            .written,
        0
    );
    let spans = [Span { first: 0, end: 2 }, Span { first: 4, end: 6 }];
    assert_eq!(marks.read("l").await.unwrap(), spans);
    assert_eq!(marks.read("other").await.unwrap(), []);
    // Rows that were marked before are not written again.
    let outcome = loader.load(&texts(&[&["7"]]), Some(&mark("l", 4, 5))).await;
    assert!(
        matches!(outcome, Err(LoadFault::Hopeless(_))),
        "{outcome:?}"
    );
    assert_eq!(bed.sql("select count(*) from t").trim(), "2");
}

#[tokio::test]
async fn without_the_table_of_marks_nothing_is_written() {
    let bed = Bed::new("create table t (id int primary key);").await;
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let outcome = loader.load(&texts(&[&["1"]]), Some(&mark("l", 0, 1))).await;
    assert!(
        matches!(outcome, Err(LoadFault::Hopeless(_))),
        "{outcome:?}"
    );
    assert_eq!(bed.sql("select count(*) from t").trim(), "0");
}

#[tokio::test]
async fn one_mark_takes_the_place_of_many() {
    let bed = Bed::new("select 1;").await;
    let marks = bed.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    bed.sql("insert into windrow_loads values ('l', 0, 5), ('l', 5, 6), ('l', 9, 12), ('L', 0, 3)");
    marks.merge(&mark("l", 0, 9)).await.unwrap();
    let spans = [Span { first: 0, end: 9 }, Span { first: 9, end: 12 }];
    assert_eq!(marks.read("l").await.unwrap(), spans);
    assert_eq!(marks.read("L").await.unwrap(), [Span { first: 0, end: 3 }]);
    marks.merge(&mark("l", 0, 12)).await.unwrap();
    assert_eq!(marks.read("l").await.unwrap(), [Span { first: 0, end: 12 }]);
}

#[tokio::test]
async fn marks_of_the_lane_are_the_same() {
    let bed = Bed::new("select 1;").await;
    let marks = bed.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    let shape = std::sync::Arc::new(Mark::shape());
    let made = mark("l'\\", 7, u64::MAX);
    let write = windrow_core::Write::new(shape, made.row());
    let mut executor = bed
        .sink
        .connect(windrow_core::Purpose::Batches)
        .await
        .unwrap();
    let report = executor.execute(&[windrow_core::Unit::one(write)]).await;
    assert!(
        matches!(&report.verdicts[0], windrow_core::Verdict::Final(Ok(_))),
        "{report:?}"
    );
    let end = u64::try_from(i64::MAX).unwrap();
    assert_eq!(marks.read("l'\\").await.unwrap(), [Span { first: 7, end }]);
}
