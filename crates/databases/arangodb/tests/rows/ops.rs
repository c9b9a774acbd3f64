//! Every operation.

use windrow_core::{FaultClass, Unit, Value};

use crate::support::*;

#[tokio::test]
async fn insert_update_delete_and_get() {
    let mut bed = Bed::new().await;
    let insert = bed.insert(&["_key", "name"]);
    let update = bed.update(&["name", "n"]);
    let units = [
        insert.unit(["a".into(), "A".into()]),
        insert.unit([7.into(), "B".into()]),
        update.unit(["z".into(), Value::Null, 7.into()]),
        update.unit(["z".into(), 1.into(), "none".into()]),
        update.unit(["z".into(), 1.into(), Value::Null]),
        bed.update(&[]).unit(["a".into()]),
        bed.get()
            .returning(&["name", "n", "_key", "_id", "no"])
            .unit([7.into()]),
        bed.get().unit(["none".into()]),
        bed.delete().returning(&["name"]).unit(["a".into()]),
        bed.delete().unit(["a".into()]),
    ];
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(
        brief(&outcomes),
        ["1", "1", "1", "0", "0", "1", "1", "0", "1", "0"]
    );
    let gave = |i: usize| returned(&outcomes[i].as_ref().unwrap()[0]);
    let id = format!("{}/7", bed.table);
    assert_eq!(
        gave(6),
        vec![vec![
            "z".into(),
            Value::Null,
            "7".into(),
            id.into(),
            Value::Null
        ]]
    );
    assert_eq!(gave(7), Vec::<Vec<Value>>::new());
    assert_eq!(gave(8), vec![vec!["A".into()]]);
}

#[tokio::test]
async fn conflicts_are_told_ignored_or_overwritten() {
    let mut bed = Bed::new().await;
    let columns = ["_key", "a", "b"];
    let (insert, row) = (bed.insert(&columns), |n: i32| {
        ["k".into(), n.into(), json("{\"x\":1}")]
    });
    let units = [
        insert.unit(row(1)),
        insert.unit(row(2)),
        insert.clone().ignore().unit(row(3)),
        insert
            .clone()
            .ignore()
            .unit(["l".into(), 3.into(), Value::Null]),
        bed.insert(&["_key", "b"])
            .upsert()
            .unit(["k".into(), json("{\"y\":2}")]),
        bed.insert(&["_key", "b"])
            .upsert()
            .key(&["_key"])
            .unit(["m".into(), 5.into()]),
        bed.insert(&["_key", "b"])
            .upsert()
            .key(&["b"])
            .unit(["m".into(), 5.into()]),
    ];
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(
        brief(&outcomes),
        ["1", "23505", "0", "1", "1", "1", "42P10"]
    );
    let duplicate = fault(&outcomes[1]);
    assert_eq!(
        (duplicate.class, duplicate.constraint()),
        (FaultClass::Unique, Some("primary"))
    );
    assert!(
        duplicate.message.contains("conflicting key: k"),
        "{duplicate}"
    );
    assert!(duplicate.detail().unwrap().contains("1210"));
    // What is not named stays, what is named is replaced as a whole.
    assert_eq!(
        bed.read("k", &["a", "b"]).await,
        Some(vec![1.into(), json("{\"y\":2}")])
    );
}

#[tokio::test]
async fn generated_keys_are_each_writers_own() {
    let mut bed = Bed::new().await;
    let insert = bed.insert(&["n"]).returning(&["_key", "n"]);
    let outcomes = bed
        .outcomes(&insert.units((0..20).map(|n| [n.into()])))
        .await;
    let mut keys = Vec::new();
    for (n, outcome) in (0..20).zip(&outcomes) {
        let mut row = returned(&outcome.as_ref().unwrap()[0]).remove(0);
        assert_eq!(row.pop(), Some(n.into()));
        let Some(Value::Text(key)) = row.pop() else {
            panic!("no key")
        };
        assert_eq!(bed.read(&key, &["n"]).await, Some(vec![n.into()]));
        keys.push(key);
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 20);
    let null = bed
        .insert(&["_key", "n"])
        .all()
        .unit([Value::Null, 1.into()]);
    assert_eq!(bed.one(null).await.unwrap().rows, 1);
}

#[tokio::test]
async fn values_come_back_as_they_went_in() {
    let mut bed = Bed::new().await;
    let columns = ["_key", "b", "i", "u", "d", "t", "o", "a", "z"];
    let row = [
        "k".into(),
        true.into(),
        i64::MIN.into(),
        number("18446744073709551615"),
        number("0.1"),
        "a\"\\\n\u{1F600}".into(),
        json("{\"x\":{\"y\":1}}"),
        json("[1,\"2\",null]"),
        Value::Null,
    ];
    let insert = bed.insert(&columns).unit(row.clone());
    bed.one(insert).await.unwrap();
    assert_eq!(bed.read("k", &columns).await, Some(row.to_vec()));
    let digits = bed
        .insert(&["_key", "d"])
        .unit(["x".into(), number("0.12345678901234567890123")]);
    let fault = bed.one(digits).await.unwrap_err();
    assert_eq!(
        (fault.class, fault.column()),
        (FaultClass::Value, Some("d"))
    );
    assert!(fault.message.contains("send it as a text"), "{fault}");
}

#[tokio::test]
async fn what_makes_no_sense_is_named() {
    let mut bed = Bed::new().await;
    let several = Unit::of([
        bed.insert(&["n"]).write([1.into()]),
        bed.insert(&["n"]).write([2.into()]),
    ]);
    let fault = bed.one(several).await.unwrap_err();
    assert!(fault.message.contains("no transactions"), "{fault}");
    let moved = bed.update(&["_key"]).unit(["b".into(), "a".into()]);
    assert_eq!(
        bed.one(moved).await.unwrap_err().class,
        FaultClass::Unsupported
    );
    let odd = bed.insert(&["_key"]).unit(["a key/with slash".into()]);
    let fault = bed.one(odd).await.unwrap_err();
    assert_eq!((fault.class, &*fault.code), (FaultClass::Value, "22P02"));
    let short = bed.delete().unit([]);
    assert!(
        bed.one(short)
            .await
            .unwrap_err()
            .message
            .contains("1 values are needed, 0 given")
    );
}
