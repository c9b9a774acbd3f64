//! Values in and out.

use windrow_core::{FaultClass, Value};

use crate::support::*;

#[tokio::test]
async fn values_come_back_as_they_went_in() {
    let mut bed = Bed::new(
        "id TEXT PRIMARY KEY, b BOOLEAN, i BIGINT, d DOUBLE PRECISION, n NUMERIC(30, 10), t TEXT, ts TIMESTAMP WITH TIME ZONE, o OBJECT",
    )
    .await;
    let columns = ["id", "b", "i", "d", "n", "t", "ts", "o"];
    let row = [
        "k".into(),
        true.into(),
        (i64::MIN + 1).into(),
        number("0.1"),
        number("12345678901234567890.0123456789"),
        "a\"\\\n\u{1F600}".into(),
        "2013-01-01T06:00:00.5Z".into(),
        json("{\"a\":{\"b\":1}}"),
    ];
    let insert = bed.insert(&columns);
    bed.one(insert.unit(row.clone())).await.unwrap();
    let get = bed.get().returning(&columns);
    let done = bed.one(get.unit(["k".into()])).await.unwrap();
    assert_eq!(returned(&done), vec![row.to_vec()]);
    // All of them NULL.
    let mut nulls = [const { Value::Null }; 8];
    nulls[0] = "n".into();
    bed.one(insert.unit(nulls.clone())).await.unwrap();
    let done = bed.one(get.unit(["n".into()])).await.unwrap();
    assert_eq!(returned(&done), vec![nulls.to_vec()]);
}

/// CrateDB keeps these two numbers for itself.
#[tokio::test]
async fn the_first_and_the_last_bigint_are_refused_to_their_own_clients() {
    let mut bed = Bed::new("id TEXT PRIMARY KEY, i BIGINT").await;
    let insert = bed.insert(&["id", "i"]);
    let rows = [("a", i64::MIN), ("b", i64::MAX), ("c", i64::MAX - 1)];
    let told = bed
        .outcomes(&rows.map(|(id, i)| insert.unit([id.into(), i.into()])))
        .await;
    assert_eq!(fault(&told[0]).class, FaultClass::Value);
    assert_eq!(fault(&told[1]).class, FaultClass::Value);
    assert!(told[2].is_ok(), "{told:?}");
    assert_eq!(bed.count().await, 1);
}

#[tokio::test]
async fn spelling_and_digits_are_kept_or_the_value_is_refused() {
    let mut bed = Bed::new("id TEXT PRIMARY KEY, i BIGINT, d DOUBLE PRECISION").await;
    let text = bed.insert(&["id"]).unit([number("1.50")]);
    bed.one(text).await.unwrap();
    let get = bed.get().unit(["1.50".into()]);
    assert_eq!(bed.one(get).await.unwrap().rows, 1);
    // A fraction is not cut off, infinity is not stored.
    let fraction = bed.insert(&["id", "i"]).unit(["a".into(), number("1.5")]);
    assert_eq!(
        bed.one(fraction).await.unwrap_err().class,
        FaultClass::Value
    );
    let large = bed.insert(&["id", "d"]).unit(["a".into(), number("1e400")]);
    let fault = bed.one(large).await.unwrap_err();
    assert_eq!(
        (fault.class, fault.column()),
        (FaultClass::Value, Some("d"))
    );
    let broken = bed.insert(&["id", "i"]).unit(["a".into(), json("{")]);
    assert_eq!(bed.one(broken).await.unwrap_err().class, FaultClass::Value);
    assert_eq!(bed.count().await, 1);
}
