//! Tables and columns made from the rows that come.

use windrow_core::{FaultClass, RowWrite, Unit, Value};
use windrow_database::Options;

use crate::support::*;
use windrow_testkit::row;

async fn bed() -> Bed {
    let options = Options {
        create_tables: true,
        ..Options::default()
    };
    Bed::with("select 1", &options).await
}

#[tokio::test]
async fn a_table_is_made_from_its_first_rows_and_keeps_them_exactly() {
    let mut bed = bed().await;
    let shape = insert(
        "made",
        &["id", "flag", "n", "x", "text", "doc", "data", "nothing"],
    )
    .shape();
    let rows = |id: i32| {
        let mut row = row![id, true, 5, 0.5, "Ünï\u{1F33E} "];
        row.extend([json("{\"a\":1}"), vec![0, 255].into(), Value::Null]);
        row
    };
    let units: Vec<Unit<RowWrite>> = (0..5).map(|id| unit(&shape, rows(id))).collect();
    bed.succeed(&units).await;
    let read = get("made").shape();
    let done = bed.succeed(&[unit(&read, row![3])]).await.remove(0);
    assert_eq!(done.returned.unwrap().rows[0].to_vec(), rows(3));
    let engine = "select engine, table_collation from information_schema.tables where table_schema = database()";
    assert_eq!(bed.sql(engine), "InnoDB|utf8mb4_nopad_bin");
    let outcomes = bed.outcomes(&[unit(&shape, rows(3))]).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::Unique);
}

#[tokio::test]
async fn columns_are_added_and_widened_where_nothing_is_lost() {
    let mut bed = bed().await;
    let put = |columns: &[&str], row: Vec<Value>| unit(&insert("w", columns).shape(), row);
    bed.succeed(&[put(
        &["id", "n", "late", "x"],
        vec![1.into(), 5.into(), Value::Null, number("0.5")],
    )])
    .await;
    bed.succeed(&[put(&["id", "n"], vec![2.into(), number("1.25")])])
        .await;
    bed.succeed(&[put(&["id", "late", "more"], row![3, "now", true])])
        .await;
    bed.succeed(&[put(
        &["id", "x"],
        vec![4.into(), number("0.1000000000000000055511151231257827")],
    )])
    .await;
    let many: Vec<Unit<RowWrite>> = (10..20)
        .map(|id| put(&["id", "k"], row![format!("key {id}"), id]))
        .collect();
    // A key is not widened: its rows fail, with the server's own words.
    for outcome in bed.outcomes(&many).await {
        assert_eq!(fault(&outcome).class, FaultClass::Value);
    }
    assert_eq!(
        bed.sql("select id, n + 0.0 = 5, late, more, x < 0.2 from w order by id"),
        "1|1|NULL|NULL|0\n2|0|NULL|NULL|NULL\n3|NULL|now|1|NULL\n4|NULL|NULL|NULL|1"
    );
}

#[tokio::test]
async fn texts_are_keys_to_the_letter() {
    let mut bed = bed().await;
    let put = insert("dev", &["name", "n"])
        .upsert()
        .key(&["name"])
        .shape();
    let names = ["a", "A", "a ", "ä", "Ä"];
    let units: Vec<Unit<RowWrite>> = names
        .iter()
        .map(|name| unit(&put, row![*name, 1]))
        .collect();
    bed.succeed(&units).await;
    assert_eq!(bed.sql("select count(*) from dev"), "5");
}

#[tokio::test]
async fn without_the_option_nothing_is_made() {
    let mut bed = Bed::new("select 1").await;
    let shape = insert("nowhere", &["id"]).shape();
    let outcomes = bed.outcomes(&[unit(&shape, row![1])]).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::NoTable);
}
