//! Marks: what is done of a load, written with its rows.

use windrow_core::{FaultClass, OnConflict, Span};
use windrow_testkit::postgres::psql;

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

fn span(first: u64, end: u64) -> Span {
    Span { first, end }
}

#[tokio::test]
async fn a_mark_is_there_exactly_where_its_portion_is() {
    let bed = Bed::new("create table t (id int primary key)").await;
    let marks = bed.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    let mut first = 0;
    for on_conflict in [OnConflict::Error, OnConflict::Ignore, OnConflict::Update] {
        bed.sql("truncate t; truncate windrow_loads");
        let mut loader = bed.loader(&with(plan("t", &["id"]), on_conflict)).await;
        let m = mark("load ä'\\", 10, 12);
        assert_eq!(
            loader.load(&plain(&[["1"], ["2"]]), Some(&m)).await,
            Ok(written(2))
        );
        refused(
            loader
                .load(&plain(&[["3"], ["x"]]), Some(&mark("load ä'\\", 12, 14)))
                .await,
        );
        assert_eq!(marks.read("load ä'\\").await.unwrap(), [span(10, 12)]);
        assert_eq!(marks.read("other").await.unwrap(), []);
        // The same portion again, by mistake: neither rows nor a second mark.
        hopeless(loader.load(&plain(&[["5"]]), Some(&m)).await);
        assert_eq!(bed.sql("select count(*) from t"), "2");
        first += 1;
    }
    assert_eq!(first, 3);
}

#[tokio::test]
async fn marks_are_merged() {
    let bed = Bed::new("select 1").await;
    let marks = bed.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    for (load, first, end) in [
        ("l", 20, 30),
        ("l", 0, 10),
        ("l", 10, 20),
        ("l", 50, 60),
        ("k", 0, 10),
    ] {
        bed.sql(&format!(
            "insert into windrow_loads values ('{load}', {first}, {end})"
        ));
    }
    marks.merge(&mark("l", 0, 30)).await.unwrap();
    assert_eq!(marks.read("l").await.unwrap(), [span(0, 30), span(50, 60)]);
    assert_eq!(marks.read("k").await.unwrap(), [span(0, 10)]);
    marks.merge(&mark("l", 70, 80)).await.unwrap();
    marks.merge(&mark("l", 0, 80)).await.unwrap();
    assert_eq!(marks.read("l").await.unwrap(), [span(0, 80)]);
    // One that overlaps without lying within stays, and so does what it collides with.
    let fault = marks.merge(&mark("l", 0, 70)).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Unique);
    assert_eq!(marks.read("l").await.unwrap(), [span(0, 80)]);
}

#[tokio::test]
async fn many_may_prepare_at_once() {
    let bed = Bed::new("select 1").await;
    let marks = bed.bulk.marks().unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let marks = marks.clone();
            tokio::spawn(async move { marks.prepare().await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(marks.read("l").await.unwrap(), []);
    let columns = bed.sql("select string_agg(column_name || ' ' || data_type, ', ' order by ordinal_position) from information_schema.columns where table_name = 'windrow_loads'");
    assert_eq!(columns, "load text, first_row bigint, end_row bigint");
}

#[tokio::test]
async fn a_mark_without_its_table_ends_the_load() {
    let bed = Bed::new("create table t (id int)").await;
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let fault = hopeless(loader.load(&plain(&[["1"]]), Some(&mark("l", 0, 1))).await);
    assert_eq!(fault.class, FaultClass::NoTable);
    assert_eq!(bed.sql("select count(*) from t"), "0");
}

/// A program that was killed has left a portion behind that the server has not committed yet.
#[tokio::test]
async fn what_is_still_being_written_is_waited_for() {
    let bed = Bed::new("select 1").await;
    let marks = bed.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    let portion = "begin; \
        select pg_advisory_xact_lock_shared(1467117431, hashtext('l')); \
        insert into windrow_loads values ('l', 0, 10); \
        select pg_sleep(1); \
        commit";
    let url = bed.database.url().to_owned();
    let writer = std::thread::spawn(move || psql(&url, portion).unwrap());
    let held = "select count(*) from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and granted \
        and database = (select oid from pg_database where datname = current_database())";
    while bed.sql(held) == "0" {}
    assert_eq!(marks.read("other").await.unwrap(), []);
    assert_eq!(marks.read("l").await.unwrap(), [span(0, 10)]);
    writer.join().unwrap();
}
