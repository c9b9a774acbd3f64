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

/// CrateDB keeps that number for itself.
#[tokio::test]
async fn the_least_bigint_is_refused_to_its_own_client() {
    let mut bed = Bed::new("id TEXT PRIMARY KEY, i BIGINT").await;
    let insert = bed.insert(&["id", "i"]);
    let units =
        [("a", i64::MIN), ("b", i64::MAX)].map(|(id, i)| insert.unit([id.into(), i.into()]));
    let told = bed.outcomes(&units).await;
    assert_eq!(fault(&told[0]).class, FaultClass::Value);
    assert!(told[1].is_ok());
    assert_eq!(bed.count().await, 1);
}

#[tokio::test]
async fn spelling_and_digits_are_kept_or_the_value_is_refused() {
    let mut bed = Bed::new("id TEXT PRIMARY KEY, i BIGINT, d DOUBLE PRECISION").await;
    let text = bed.insert(&["id"]).unit([number("1.50")]);
    bed.one(text).await.unwrap();
    assert_eq!(
        bed.one(bed.get().unit(["1.50".into()])).await.unwrap().rows,
        1
    );
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
