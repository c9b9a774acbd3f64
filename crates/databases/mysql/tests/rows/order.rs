//! Units of one source keep their order, whatever fails or waits.

use mysql_async::prelude::Queryable;
use windrow_core::{FaultClass, RowWrite, SourceId, Unit, Verdict};

use crate::support::*;
use windrow_testkit::row;

/// The units as those of one source.
fn of(source: u64, mut units: Vec<Unit<RowWrite>>) -> Vec<Unit<RowWrite>> {
    for unit in &mut units {
        unit.hand_over(SourceId(source));
    }
    units
}

#[tokio::test]
async fn a_child_that_was_sent_before_its_parent_fails() {
    let mut bed = Bed::new(
        "create table parent (id int primary key);
         create table child (id int primary key, p int, foreign key (p) references parent (id))",
    )
    .await;
    let parent = insert("parent", &["id"]).shape();
    let child = insert("child", &["id", "p"]).shape();
    let mut units = Vec::new();
    for n in 0..20 {
        units.push(unit(&child, row![n, n]));
        units.push(unit(&parent, row![n]));
        units.push(unit(&child, row![100 + n, n]));
    }
    let outcomes = bed.outcomes(&of(1, units)).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match n % 3 {
            0 => assert_eq!(fault(outcome).class, FaultClass::ForeignKey, "{n}"),
            _ => assert!(outcome.is_ok(), "{n}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn generated_numbers_rise_in_the_order_in_which_a_source_sent_its_rows() {
    let mut bed =
        Bed::new("create table t (id int primary key, n int auto_increment unique, who int)").await;
    let shape = insert("t", &["id", "who"]).shape();
    let mut units = Vec::new();
    for n in (0..40).rev() {
        for who in 1..4 {
            let row = unit(&shape, row![who * 1000 + n, who]);
            units.extend(of(u64::try_from(who).unwrap(), vec![row]));
        }
    }
    bed.succeed(&units).await;
    let disorder =
        "select count(*) from t a join t b on a.who = b.who and a.id > b.id and a.n > b.n";
    assert_eq!(bed.sql(disorder), "0");
}

#[tokio::test]
async fn nothing_of_a_source_overtakes_what_waits_for_a_lock() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a int); insert into t select seq, 0 from seq_0_to_39;
         create table log (id int primary key)",
    )
    .await;
    let mut other = session(bed.database.url()).await;
    other.query_drop("begin").await.unwrap();
    other
        .query_drop("update t set a = 1 where id = 7")
        .await
        .unwrap();
    let (set, log) = (update("t", &["a"]).shape(), insert("log", &["id"]).shape());
    let mut units = of(1, (0..20).map(|n| unit(&set, row![5, n])).collect());
    units.extend(of(1, vec![unit(&log, row![1])]));
    units.extend(of(2, (20..40).map(|n| unit(&set, row![5, n])).collect()));
    units.extend(of(2, vec![unit(&log, row![2])]));
    let report = bed.run(&units).await;
    for (n, verdict) in report.verdicts.iter().enumerate() {
        match verdict {
            Verdict::Final(outcome) => assert!(!(7..=20).contains(&n) && outcome.is_ok(), "{n}"),
            Verdict::WaitsForLock(fault) => assert_eq!((n, &*fault.code), (7, "55P03")),
            Verdict::NotTried => assert!((8..=20).contains(&n), "{n}"),
            Verdict::RolledBack(fault) => panic!("{n}: {fault}"),
        }
    }
    assert_eq!(bed.sql("select count(*) from t where a = 5"), "27");
    assert_eq!(bed.sql("select group_concat(id) from log"), "2");
    other.query_drop("rollback").await.unwrap();
}
