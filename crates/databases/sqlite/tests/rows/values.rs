//! What a value becomes, and what comes back.

use windrow_core::{FaultClass, Value};

use crate::support::*;

const TYPES: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER, r REAL, n NUMERIC, s TEXT, b BLOB, f BOOLEAN, j JSON, x);";

async fn put(db: &mut Db, column: &str, value: Value) -> Result<Vec<Value>, windrow_core::Fault> {
    let done = db
        .one(insert("t", &[column]).returning(&[column]).write([value]))
        .await?;
    Ok(returned(&done).remove(0))
}

#[tokio::test]
async fn values_come_back_as_they_went_in() {
    let mut db = Db::new(TYPES).await;
    let bytes = Value::Bytes([0, 255, 10].into());
    for (column, value) in [
        ("i", Value::Int(i64::MIN)),
        ("i", Value::Int(i64::MAX)),
        ("r", number("0.1")),
        ("r", number("5e-324")),
        ("n", number("1.5")),
        ("n", Value::Int(9_007_199_254_740_993)),
        ("s", "é\u{0}\u{1f600}".into()),
        ("s", number("0.10").clone()),
        ("b", bytes.clone()),
        ("f", true.into()),
        ("f", false.into()),
        ("j", json(r#"{"a":[1,2,{"b":null}]}"#)),
        ("j", true.into()),
        ("x", Value::Int(7)),
        ("x", "7".into()),
        ("x", number("0.25")),
        ("x", bytes.clone()),
        ("i", Value::Null),
    ] {
        let expected = match (column, &value) {
            ("s", Value::Number(digits)) => Value::text(digits.clone()),
            _ => value.clone(),
        };
        assert_eq!(
            put(&mut db, column, value).await.unwrap(),
            [expected],
            "{column}"
        );
    }
}

#[tokio::test]
async fn words_and_base64_follow_the_columns_type() {
    let mut db = Db::new(TYPES).await;
    for (column, value, expected) in [
        ("s", true.into(), Value::from("true")),
        ("s", false.into(), "false".into()),
        ("s", 12.into(), "12".into()),
        ("i", true.into(), 1.into()),
        ("x", true.into(), 1.into()),
        ("b", "aGk=".into(), b"hi".to_vec().into()),
        ("b", "".into(), Vec::new().into()),
        ("s", json("[1]"), "[1]".into()),
        // SQLite's own affinity.
        ("i", "12".into(), 12.into()),
        ("i", "twelve".into(), "twelve".into()),
    ] {
        assert_eq!(
            put(&mut db, column, value).await.unwrap(),
            [expected],
            "{column}"
        );
    }
    let fault = put(&mut db, "b", "not base64!".into()).await.unwrap_err();
    assert_eq!(
        (fault.class, &*fault.code, fault.column(), fault.table()),
        (FaultClass::Value, "22P03", Some("b"), Some("t"))
    );
    assert!(fault.message.contains("base64"));
}

#[tokio::test]
async fn numbers_are_exact_or_refused() {
    let mut db = Db::new(TYPES).await;
    let long = "0.1000000000000000055511151231257827";
    for digits in ["18446744073709551616", long, "9007199254740993.0", "1e400"] {
        for column in ["i", "n", "f", "j"] {
            let fault = put(&mut db, column, number(digits)).await.unwrap_err();
            assert_eq!((fault.class, &*fault.code), (FaultClass::Value, "22003"));
            assert!(fault.message.contains("declare the column TEXT"), "{fault}");
        }
        for column in ["s", "x"] {
            assert_eq!(
                put(&mut db, column, number(digits)).await.unwrap(),
                [digits.into()]
            );
        }
    }
    // The nearest double is what REAL means; beyond its range there is none.
    assert_eq!(
        put(&mut db, "r", number(long)).await.unwrap(),
        [number("0.1")]
    );
    let fault = put(&mut db, "r", number("1e400")).await.unwrap_err();
    assert_eq!(&*fault.code, "22003");
    // Exact, though written otherwise.
    assert_eq!(
        put(&mut db, "i", number("1e3")).await.unwrap(),
        [1000.into()]
    );
    assert_eq!(
        put(&mut db, "n", number("1.50")).await.unwrap(),
        [number("1.5")]
    );
    // A key is held to the same.
    let fault = db
        .one(get("t").write([number("9007199254740992.5")]))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Value);
}

#[tokio::test]
async fn strict_tables_say_what_does_not_fit() {
    let mut db = Db::new("CREATE TABLE t (i INTEGER, a ANY, s TEXT) STRICT").await;
    let fault = put(&mut db, "i", "twelve".into()).await.unwrap_err();
    assert_eq!(
        (fault.class, &*fault.code, fault.table(), fault.column()),
        (FaultClass::Value, "22000", Some("t"), Some("i"))
    );
    let fault = put(&mut db, "i", number("1.5")).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Value);
    assert_eq!(
        put(&mut db, "a", "007".into()).await.unwrap(),
        ["007".into()]
    );
}

#[tokio::test]
async fn a_wrong_primary_key_type_is_a_value_fault() {
    let mut db = Db::new(TYPES).await;
    let fault = put(&mut db, "id", "abc".into()).await.unwrap_err();
    assert_eq!((fault.class, &*fault.code), (FaultClass::Value, "22P02"));
}
