//! Values come back as they were given.

use windrow_core::{FaultClass, Unit, Value};

use crate::bed::Bed;
use crate::words::*;

/// Values for each type of column.
fn cases() -> Vec<(&'static str, Vec<Value>)> {
    let numbers = [
        "0.1",
        "-1234567890.0625",
        "9007199254740993.5",
        "123456789012345678901234567890.123456789",
        "1e20",
    ];
    vec![
        (
            "i",
            vec![
                0.into(),
                (-1).into(),
                i64::MAX.into(),
                i64::MIN.into(),
                Value::Null,
            ],
        ),
        (
            "t",
            vec![
                "".into(),
                "plain".into(),
                "it's \"quoted\" \\ and {braced}, NULL".into(),
                "ümläut 🌾 \u{1}\n\t".into(),
                "x".repeat(10_000).into(),
                Value::Null,
            ],
        ),
        ("b", vec![true.into(), false.into(), Value::Null]),
        (
            "n",
            numbers
                .iter()
                .map(|n| Value::number(n))
                .chain([7.into(), Value::Null])
                .collect(),
        ),
        (
            "y",
            vec![Vec::new().into(), vec![0, 255, 92, 39].into(), Value::Null],
        ),
        (
            "j",
            vec![
                Value::Json(r#"{"a": [1, 2.5, null, "x\"y"], "b": {}}"#.into()),
                Value::Json("[]".into()),
                Value::Null,
            ],
        ),
    ]
}

/// A value as one text for all spellings of it.
fn plain(value: &Value) -> String {
    match value {
        Value::Bool(b) => i64::from(*b).to_string(),
        Value::Int(n) => n.to_string(),
        Value::Number(text) => decimal(text),
        Value::Json(text) => {
            let json: serde_json::Value = serde_json::from_str(text).unwrap();
            json.to_string()
        }
        other => format!("{other:?}"),
    }
}

/// Digits without an exponent and without zeros at the end.
fn decimal(text: &str) -> String {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: usize = exponent.trim_start_matches('+').parse().unwrap_or(0);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut fraction = fraction.to_owned();
    let moved = exponent.saturating_sub(fraction.len());
    let taken: String = fraction.drain(..exponent.min(fraction.len())).collect();
    let whole = format!("{whole}{taken}{}", "0".repeat(moved));
    match fraction.trim_end_matches('0') {
        "" => whole,
        fraction => format!("{whole}.{fraction}"),
    }
}

pub(crate) async fn what_is_read_is_what_was_written(mut bed: Bed) {
    let columns = [
        ("id", Type::Int),
        ("i", Type::Int),
        ("t", Type::Text),
        ("b", Type::Bool),
        ("n", Type::Number),
        ("y", Type::Bytes),
        ("j", Type::Json),
    ];
    bed.lay(&[table("v", &columns)]).await;
    for copies in [1, 8] {
        // Alone, and among others like it.
        for (place, (column, values)) in cases().into_iter().enumerate() {
            let put = insert("v", &["id", column]).upsert();
            for (n, value) in (0_i64..).zip(values) {
                let first = 100 * n;
                let units: Vec<Unit> = (first..first + copies)
                    .map(|id| put.of(vec![id.into(), value.clone()]))
                    .collect();
                for (id, outcome) in (first..).zip(bed.outcomes(&units).await) {
                    match &outcome {
                        Ok(_) => {
                            let seen = bed.seen("v", id).await.unwrap();
                            assert_eq!(plain(&seen[place + 1]), plain(&value), "{column}");
                        }
                        Err(_) => assert_eq!(class(&outcome), FaultClass::Value, "{value:?}"),
                    }
                }
            }
        }
    }
}
