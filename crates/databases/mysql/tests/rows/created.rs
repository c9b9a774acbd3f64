//! Tables and columns made from the rows that come.

use windrow_core::{FaultClass, Unit, Value};
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
    let units: Vec<Unit> = (0..5).map(|id| unit(&shape, rows(id))).collect();
    bed.succeed(&units).await;
    let read = get("made").shape();
    let done = bed.succeed(&[unit(&read, row![3])]).await.remove(0);
    let mut stored = rows(3);
    if !server(&bed).0 {
        // MySQL spells JSON its own way.
        stored[5] = json("{\"a\": 1}");
    }
    assert_eq!(done.returned.unwrap().rows[0].to_vec(), stored);
    let engine = "select engine, table_collation from information_schema.tables where table_schema = database()";
    let collation = match server(&bed).0 {
        true => "utf8mb4_nopad_bin",
        false => "utf8mb4_0900_bin",
    };
    assert_eq!(bed.sql(engine), format!("InnoDB|{collation}"));
    let outcomes = bed.outcomes(&[unit(&shape, rows(3))]).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::Unique);
}

#[tokio::test]
async fn columns_are_added_and_keep_their_types() {
    let mut bed = bed().await;
    let columns = ["id", "n", "x", "b", "d", "at", "late"];
    let shape = insert("w", &columns).shape();
    let row = |id: i32| {
        let late: Option<i32> = None;
        row![id, 5, 1.5, true, "2024-01-05", "2024-01-05T10:00:00Z", late]
    };
    bed.succeed(&[unit(&shape, row(1))]).await;
    let more = insert("w", &["id", "late", "more"]).shape();
    bed.succeed(&[unit(&more, row![2, "text", true])]).await;
    let types = "select group_concat(column_name, ' ', column_type order by column_name separator ', ') \
                 from information_schema.columns where table_schema = database() and table_name = 'w'";
    let bigint = match server(&bed).0 {
        true => "bigint(20)",
        false => "bigint",
    };
    let made = format!(
        "at datetime(6), b tinyint(1), d date, id {bigint}, late longtext, more tinyint(1), n double, x double"
    );
    assert_eq!(bed.sql(types), made);
    let mut units = vec![unit(&shape, row(3))];
    for (place, value) in [
        (0, Value::from("abc")),
        (0, number("21.5")),
        (1, 9_007_199_254_740_993_i64.into()),
        (1, "n/a".into()),
        (2, "n/a".into()),
        (2, number("0.1000000000000000055511151231257827")),
        (3, "yes".into()),
        (4, "2024-01-05T10:00:00".into()),
        (5, "now".into()),
    ] {
        let mut row = row(100);
        row[place] = value;
        units.push(unit(&shape, row));
    }
    units.push(unit(&shape, row(4)));
    let outcomes = bed.outcomes(&units).await;
    for (place, outcome) in outcomes.iter().enumerate() {
        if place == 0 || place == units.len() - 1 {
            assert!(outcome.is_ok(), "{outcome:?}");
            continue;
        }
        let fault = fault(outcome);
        assert_eq!(
            (fault.class, &*fault.code),
            (FaultClass::Value, "22P02"),
            "{place}"
        );
    }
    assert_eq!(bed.sql(types), made);
    assert_eq!(bed.sql("select count(*) from w"), "4");
}

#[tokio::test]
async fn texts_are_keys_to_the_letter() {
    let mut bed = bed().await;
    let put = insert("dev", &["name", "n"])
        .upsert()
        .key(&["name"])
        .shape();
    let names = ["a", "A", "a ", "ä", "Ä"];
    let units: Vec<Unit> = names
        .iter()
        .map(|name| unit(&put, row![*name, 1]))
        .collect();
    bed.succeed(&units).await;
    assert_eq!(bed.sql("select count(*) from dev"), "5");
}
