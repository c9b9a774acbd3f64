//! Tables that change while they are written to.

use windrow_core::{FaultClass, Unit, Value};

use crate::support::*;
use windrow_testkit::row;

#[tokio::test]
async fn a_column_that_turns_into_another_type_is_noticed_by_the_next_batch() {
    let mut bed = Bed::new("create table t (id int primary key, v varchar(50))").await;
    let shape = insert("t", &["id", "v"]).shape();
    let batch = |from: i32| -> Vec<Unit> {
        let units = (from..from + 5).map(|id| unit(&shape, row![id, "AP8="]));
        units
            .chain([Unit::of([
                write(&shape, row![from + 5, "AP8="]),
                write(&shape, row![from + 6, "AP8="]),
            ])])
            .collect()
    };
    bed.succeed(&batch(0)).await;
    bed.sql("alter table t modify v varbinary(50)");
    bed.succeed(&batch(10)).await;
    bed.sql("alter table t modify v longtext character set latin1");
    bed.succeed(&batch(20)).await;
    assert_eq!(
        bed.sql("select id div 10, hex(min(v)), hex(max(v)) from t group by 1 order by 1"),
        "0|4150383D|4150383D\n1|00FF|00FF\n2|4150383D|4150383D"
    );
}

#[tokio::test]
async fn columns_that_come_and_go_are_noticed() {
    let mut bed = Bed::new("create table t (id int primary key, a int)").await;
    let with_b = insert("t", &["id", "b"]).shape();
    let outcomes = bed.outcomes(&[unit(&with_b, row![1, 1])]).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::NoColumn);
    bed.sql("alter table t add b int");
    bed.succeed(&[unit(&with_b, row![1, 1])]).await;
    let all = get("t").shape();
    let read = bed.succeed(&[unit(&all, row![1])]).await;
    assert_eq!(read[0].returned.as_ref().unwrap().columns.len(), 3);
    bed.sql("alter table t drop b, add c int default 7 first");
    let several: Vec<Unit> = (10..15).map(|id| unit(&with_b, row![id, 1])).collect();
    for outcome in bed.outcomes(&several).await {
        assert_eq!(fault(&outcome).class, FaultClass::NoColumn);
    }
    let reads = [unit(&all, row![1]), unit(&all, row![2])];
    let read = bed.succeed(&reads).await;
    let returned = read[0].returned.as_ref().unwrap();
    let expected: Box<[Value]> = vec![7.into(), 1.into(), Value::Null].into();
    assert_eq!((returned.columns.len(), &returned.rows[0]), (3, &expected));
    bed.sql("drop table t");
    for outcome in bed.outcomes(&several).await {
        assert_eq!(fault(&outcome).class, FaultClass::NoTable);
    }
    bed.sql("create table t (id int primary key, b int)");
    bed.succeed(&several).await;
}

#[tokio::test]
async fn a_new_unique_key_makes_no_upsert_change_another_row() {
    let mut bed = Bed::new("create table t (id int primary key, mail varchar(20), n int)").await;
    let put = insert("t", &["id", "mail", "n"]).upsert().shape();
    let batch = |from: i32, mail: &str| -> Vec<Unit> {
        (from..from + 4)
            .map(|id| unit(&put, row![id, format!("{mail}{id}"), from]))
            .collect()
    };
    bed.succeed(&batch(0, "a")).await;
    bed.sql("alter table t add unique (mail)");
    let mut clash = batch(10, "b");
    clash.push(Unit::of([
        write(&put, row![20, "c", 20]),
        write(&put, row![21, "a0", 20]),
    ]));
    clash.push(unit(&put, row![22, "a1", 20]));
    let outcomes = bed.outcomes(&clash).await;
    assert!(outcomes[..4].iter().all(Result::is_ok));
    assert_eq!(outcomes[4].as_ref().unwrap_err().at, 1);
    assert_eq!(fault(&outcomes[5]).constraint(), Some("mail"));
    assert_eq!(bed.sql("select count(*), sum(n) from t"), "8|40");
}

#[tokio::test]
async fn views_are_written_through() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a int); create view v as select id, a from t where a < 100 with check option",
    )
    .await;
    let put = insert("v", &["id", "a"]).shape();
    let units: Vec<Unit> = (0..6).map(|id| unit(&put, row![id, id * 30])).collect();
    let outcomes = bed.outcomes(&units).await;
    assert!(outcomes[..4].iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(fault(&outcomes[4]).class, FaultClass::Check);
    let by_id = update("v", &["a"]).key(&["id"]).shape();
    let rows = bed
        .succeed(&[unit(&by_id, row![1, 0]), unit(&by_id, row![1, 9])])
        .await;
    assert_eq!((rows[0].rows, rows[1].rows), (1, 0));
}
