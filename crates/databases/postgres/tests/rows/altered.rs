//! Tables that change between and during batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windrow_core::{FaultClass, RowWrite, Unit, Value};

use crate::support::*;
use windrow_testkit::row;

fn batch(
    shape: &Arc<windrow_core::Shape>,
    from: i32,
    count: i32,
    value: &Value,
) -> Vec<Unit<RowWrite>> {
    (from..from + count)
        .map(|n| unit(shape, vec![n.into(), value.clone()]))
        .collect()
}

#[tokio::test]
async fn a_column_that_gets_another_type_keeps_every_digit() {
    let exact = "0.12345678901234567890123";
    for count in [1, 2, 20] {
        let mut bed = Bed::new("create table t (id int primary key, a float8)").await;
        let shape = insert("t", &["id", "a"]).shape();
        bed.succeed(&batch(&shape, 0, count, &number("0.5"))).await;
        bed.sql("alter table t alter a type numeric");
        bed.succeed(&batch(&shape, 100, count, &number(exact)))
            .await;
        assert_eq!(bed.sql("select a from t where id = 100"), exact);
        bed.sql("alter table t alter a type bytea using ''");
        bed.succeed(&batch(&shape, 200, count, &"AP8=".into()))
            .await;
        assert_eq!(bed.sql("select a from t where id = 200"), "\\x00ff");
        bed.sql("alter table t alter a type text using ''");
        bed.succeed(&batch(&shape, 300, count, &"AP8=".into()))
            .await;
        assert_eq!(bed.sql("select a from t where id = 300"), "AP8=");
    }
}

#[tokio::test]
async fn ranges_and_lengths_follow_the_column() {
    for count in [1, 2, 20] {
        let mut bed = Bed::new("create table t (id int primary key, a int, s varchar(3))").await;
        let big = insert("t", &["id", "a"]).shape();
        let long = insert("t", &["id", "s"]).shape();
        bed.succeed(&batch(&big, 0, count, &1.into())).await;
        bed.succeed(&batch(&long, 1000, count, &"abc".into())).await;
        bed.sql("alter table t alter a type bigint, alter s type varchar(30)");
        bed.succeed(&batch(&big, 100, count, &i64::MAX.into()))
            .await;
        bed.succeed(&batch(&long, 1100, count, &"a long text".into()))
            .await;
        bed.sql("delete from t; alter table t alter a type smallint, alter s type varchar(2)");
        for outcome in bed.outcomes(&batch(&big, 200, count, &40_000.into())).await {
            assert_eq!(fault(&outcome).code, "22003");
        }
        for outcome in bed
            .outcomes(&batch(&long, 1200, count, &"abc".into()))
            .await
        {
            assert_eq!(fault(&outcome).code, "22001");
        }
    }
}

#[tokio::test]
async fn columns_and_tables_come_and_go() {
    for count in [1, 2, 20] {
        let mut bed = Bed::new("create table t (id int primary key, a int)").await;
        let shape = insert("t", &["id", "a"]).all().shape();
        bed.succeed(&batch(&shape, 0, count, &1.into())).await;
        bed.sql("alter table t add b text default 'new'");
        let dones = bed.succeed(&batch(&shape, 100, count, &1.into())).await;
        let returned = dones[0].returned.as_ref().unwrap();
        assert_eq!(*returned.rows[0], *row![100, 1, "new"]);
        bed.sql("alter table t drop a");
        for outcome in bed.outcomes(&batch(&shape, 200, count, &1.into())).await {
            assert_eq!(fault(&outcome).class, FaultClass::NoColumn);
        }
        bed.sql("drop table t");
        for outcome in bed.outcomes(&batch(&shape, 300, count, &1.into())).await {
            assert_eq!(fault(&outcome).class, FaultClass::NoTable);
        }
        bed.sql("create table t (a numeric, id bigint primary key)");
        bed.succeed(&batch(&shape, 400, count, &number("1.5")))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_columns_come_and_go_under_load() {
    let patient = windrow_database::Options {
        lock_wait: std::time::Duration::from_secs(60),
        ..Default::default()
    };
    let mut bed = Bed::with("create table t (id int primary key, a int)", &patient).await;
    let shape = insert("t", &["id", "a"]).shape();
    let url = bed.database.url().to_owned();
    let over = Arc::new(AtomicBool::new(false));
    let flag = over.clone();
    let altering = tokio::task::spawn_blocking(move || {
        for round in 0..40 {
            let sql = match round % 4 {
                0 => "alter table t add b text",
                1 => "alter table t alter a type bigint",
                2 => "alter table t drop b",
                _ => "alter table t alter a type int",
            };
            windrow_testkit::postgres::psql(&url, sql).unwrap();
        }
        flag.store(true, Ordering::Release);
    });
    let mut written = 0;
    while !over.load(Ordering::Acquire) {
        let dones = bed.succeed(&batch(&shape, written, 50, &7.into())).await;
        assert!(dones.iter().all(|d| d.rows == 1));
        written += 50;
    }
    altering.await.unwrap();
    assert_eq!(
        bed.sql("select count(*), sum(a) from t"),
        format!("{written}|{}", written * 7)
    );
}
