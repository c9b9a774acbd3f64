//! Tables that are not joined, and tables that change after they were described.

use std::sync::Arc;
use std::time::Instant;

use windrow_core::{Describer, Report, Rung, Statement, UnitOutcome, Verdict};
use windrow_testkit::process::TEST_TIMEOUT;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn only_proven_tables_are_joined() {
    let bed = Bed::new(
        "create table base (id int primary key, a int); create view v as select * from base; \
         create table my (id int primary key) engine = MyISAM; \
         create table fired (id int primary key, a int); \
         create trigger x before insert on fired for each row set @seen = new.id; \
         create table harmless (id int primary key, a int); \
         create trigger y before insert on harmless for each row set new.a = 7",
    )
    .await;
    assert_eq!(bed.apart(insert("v", &["id"])).await, "a view");
    assert_eq!(
        bed.apart(insert("my", &["id"])).await,
        "another engine than InnoDB"
    );
    assert_eq!(
        bed.apart(insert("fired", &["id"])).await,
        "a trigger that is not proven"
    );
    assert_eq!(
        bed.apart(insert("missing", &["id"])).await,
        "the server refuses it"
    );
    let by_other = bed.apart(update("base", "id", "a")).await;
    assert_eq!(by_other, "a condition that names no unique key");
    bed.describe(update("fired", "a", "id")).await;
    bed.describe(insert("harmless", &["id"])).await;
    let levels = bed.sink.standings();
    assert!(
        levels.iter().any(|standing| &*standing.table.table == "my"),
        "{levels:?}"
    );
}

/// Executes batches of new rows until a statement was retired. Returns the last report.
async fn until_retired(bed: &mut Bed, put: &Arc<Statement>, rows: i32) -> Report {
    let start = Instant::now();
    for batch in 0.. {
        let ids = 100 + rows * batch..100 + rows * (batch + 1);
        let call = |n: i32| unit(text(put, &[&n.to_string(), "1"]));
        let report = bed.run(&ids.map(call).collect::<Vec<_>>()).await;
        for verdict in &report.verdicts {
            assert_eq!(told(verdict.clone()).unwrap()[0].rows, 1);
        }
        if put.is_retired() {
            let count = bed.sql("select count(*) from t").parse();
            assert_eq!(count, Ok(rows * (batch + 1)));
            return report;
        }
        assert!(report.usable && start.elapsed() < TEST_TIMEOUT);
    }
    panic!("never retired");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_table_is_noticed_within_a_transaction() {
    let mut bed = Bed::new("create table t (id int primary key, a int)").await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    bed.sql("create trigger x before insert on t for each row set @seen = new.id");
    let report = until_retired(&mut bed, &put, 4).await;
    assert!(!report.usable);
    assert_eq!(rung(&report, Rung::Isolated), 4);
    let again = insert("t", &["id", "a"]);
    assert_eq!(bed.apart(again).await, "a trigger that is not proven");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_the_server_refuses_is_not_joined() {
    let bed = Bed::new("create table t (id int primary key, `key` int)").await;
    assert_eq!(
        bed.apart(insert("t", &["id", "key"])).await,
        "the server refuses it"
    );
    assert_eq!(
        bed.apart(insert("t", &["id", "b"])).await,
        "the server refuses it"
    );
    bed.describe(insert("t", &["id"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_read_again_once_a_statement_was_retired() {
    let bed = Bed::new("create table t (id int primary key, a int)").await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    bed.sql("create trigger x before insert on t for each row set @seen = new.id");
    put.retire();
    let again = insert("t", &["id", "a"]);
    assert_eq!(bed.apart(again).await, "a trigger that is not proven");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_alone_notices_a_change_too() {
    let mut bed = Bed::new("create table t (id int primary key, a int)").await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    bed.sql("alter table t add column b int");
    until_retired(&mut bed, &put, 1).await;
    assert!(!bed.sink.is_current(&put).await.unwrap());
    let again = bed.describe(insert("t", &["id", "a"])).await;
    assert!(bed.sink.is_current(&again).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_engine_that_undoes_nothing_are_not_written_twice() {
    let mut bed = Bed::new("create table t (id int, a int)").await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    bed.sql("alter table t engine = MyISAM");
    let start = Instant::now();
    let mut expected = 0;
    while !put.is_retired() {
        let call = |n: i32| unit(text(&put, &[&n.to_string(), "1"]));
        let report = bed.run(&(0..4).map(call).collect::<Vec<_>>()).await;
        let is_unknown = |verdict: &Verdict| matches!(verdict, Verdict::Final(Err(_)));
        let unknown = report.verdicts.iter().filter(|v| is_unknown(v)).count();
        assert!(unknown == 0 || unknown == 4, "{report:?}");
        expected += 4;
        assert!(start.elapsed() < TEST_TIMEOUT);
    }
    assert_eq!(bed.sql("select count(*) from t"), expected.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_an_engine_keeps_are_not_written_twice() {
    let variables = [("sql_mode", "")];
    let mut bed = Bed::with("create table t (id int, a varchar(3))", &variables, |_| {}).await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    bed.sql("alter table t engine = MyISAM");
    // The rows warn, so the batch is rolled back to find out which of them does.
    let call = |n: i32| unit(text(&put, &[&n.to_string(), "'too long'"]));
    let report = bed.run(&(0..4).map(call).collect::<Vec<_>>()).await;
    let finals = |verdict: &Verdict| matches!(verdict, Verdict::Final(_));
    assert!(report.verdicts.iter().all(finals), "{report:?}");
    assert_eq!(bed.sql("select count(*) from t"), "4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_from_a_table_without_numbers_shows_that_it_has_changed() {
    let mut bed = Bed::new("create table t (id int primary key, a int)").await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    bed.sql("alter table t modify id int auto_increment");
    let call = || unit(text(&put, &["NULL", "1"]));
    let (done, _) = bed.succeed(&[call()]).await;
    assert_eq!(answer(&done[0]).last_insert_id, Some(1));
    assert!(put.is_retired());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_a_row_is_known_if_its_statement_was_retired() {
    let mut bed = Bed::new("create table t (id int auto_increment primary key, a int)").await;
    let put = bed.describe(insert("t", &["a"])).await;
    put.retire();
    let call = || unit(text(&put, &["1"]));
    let outcomes = bed.outcomes(&[call(), call()]).await;
    let id = |outcome: UnitOutcome| answer(&outcome.unwrap()[0]).last_insert_id;
    let ids: Vec<_> = outcomes.into_iter().map(id).collect();
    assert_eq!(ids, [Some(1), Some(2)]);
}
