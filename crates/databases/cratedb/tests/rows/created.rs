//! Tables and columns that are made from the rows that name them.

use windrow_core::{FaultClass, Value};

use crate::support::*;

#[tokio::test]
async fn a_table_is_made_from_its_first_rows() {
    let mut bed = Bed::creating("").await;
    let columns = ["id", "b", "n", "d", "s", "j", "later"];
    let insert = bed.insert(&columns);
    let units = insert.units((0..10).map(|id| {
        let d = if id == 9 {
            number("0.12345678901234567890123")
        } else {
            number("1.5")
        };
        [
            id.into(),
            true.into(),
            number("0.5"),
            d,
            "text".into(),
            json("{\"a\":1}"),
            Value::Null,
        ]
    }));
    assert!(bed.outcomes(&units).await.iter().all(Result::is_ok));
    let twice = bed.outcomes(&units[..1]).await;
    assert_eq!(fault(&twice[0]).class, FaultClass::Unique);
    let get = bed.get().returning(&["id", "n", "d", "j"]);
    let done = bed.one(get.unit([9.into()])).await.unwrap();
    let row = vec![
        9.into(),
        number("0.5"),
        "0.12345678901234567890123".into(),
        json("{\"a\":1}"),
    ];
    assert_eq!(returned(&done), vec![row]);
    // The column that had nothing but NULL is made once a value comes.
    let more = insert.unit([
        10.into(),
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        7.into(),
    ]);
    bed.one(more).await.unwrap();
    let get = bed.get().returning(&["later", "b"]);
    let done = bed.one(get.unit([10.into()])).await.unwrap();
    assert_eq!(returned(&done), vec![vec![7.into(), Value::Null]]);
}

#[tokio::test]
async fn columns_are_added_and_never_widened() {
    let mut bed = Bed::creating("id BIGINT PRIMARY KEY, a BIGINT").await;
    let units = [
        bed.insert(&["id", "a", "new"])
            .unit([1.into(), 1.into(), 1.into()]),
        bed.insert(&["id", "a", "new"])
            .unit([2.into(), "word".into(), 2.into()]),
        bed.update(&["note"]).unit(["hello".into(), 1.into()]),
    ];
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(brief(&outcomes), ["1", "22P02", "1"]);
    let get = bed.get().returning(&["new", "note"]);
    let done = bed.one(get.unit([1.into()])).await.unwrap();
    assert_eq!(returned(&done), vec![vec![1.into(), "hello".into()]]);
}

#[tokio::test]
async fn a_named_key_is_the_primary_key() {
    let mut bed = Bed::creating("").await;
    let upsert = bed.insert(&["id", "at", "v"]).upsert().key(&["id", "at"]);
    let units = upsert.units((0..20).map(|n| ["s".into(), (n % 5).into(), n.into()]));
    assert!(bed.outcomes(&units).await.iter().all(Result::is_ok));
    assert_eq!(bed.count().await, 5);
}

#[tokio::test]
async fn a_dynamic_table_makes_its_own_columns() {
    let mut bed = Bed::new("id BIGINT PRIMARY KEY;").await;
    let insert = bed
        .insert(&["id", "n", "s"])
        .units((0..5).map(|n| [n.into(), n.into(), "x".into()]));
    assert!(bed.outcomes(&insert).await.iter().all(Result::is_ok));
}
