//! Converts a stored value for the client.

use rusqlite::types::ValueRef;
use serde_json::value::RawValue;
use windrow_core::Value;
use windrow_database::decimal;

use crate::values::column::ColumnType;
use crate::values::moment::shown_form;

/// Converts a stored value for the client.
pub(crate) fn value(stored: ValueRef<'_>, column_type: ColumnType) -> Value {
    match (stored, column_type) {
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Integer(n @ (0 | 1)), ColumnType::Bool) => Value::Bool(n == 1),
        (ValueRef::Integer(n), _) => Value::Int(n),
        (ValueRef::Real(x), _) => Value::from(x),
        (ValueRef::Blob(bytes), _) => Value::Bytes(bytes.into()),
        (ValueRef::Text(bytes), _) => match str::from_utf8(bytes) {
            Ok(text) => self::text(text, column_type),
            Err(_) => Value::Bytes(bytes.into()),
        },
    }
}

fn text(text: &str, column_type: ColumnType) -> Value {
    match column_type {
        ColumnType::Decimal if decimal::is_number(text) => Value::number(text),
        ColumnType::Json => json(text),
        ColumnType::UniformMoment(_) => Value::text(shown_form(text)),
        _ => Value::text(text),
    }
}

/// Reads the text of a JSON value. A text that is no JSON is returned as a text: other programs and
/// earlier releases of Windrow store such texts.
fn json(text: &str) -> Value {
    let is_json = || serde_json::from_str::<&RawValue>(text).is_ok();
    match text.trim_start().as_bytes() {
        [b'"' | b'{' | b'[' | b'n', ..] if is_json() => Value::Json(text.into()),
        _ => match text.trim() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::text(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_by_what_is_stored_and_declared() {
        use ColumnType::*;
        for (stored, column_type, expected) in [
            (ValueRef::Null, Text, Value::Null),
            (ValueRef::Integer(1), Bool, true.into()),
            (ValueRef::Integer(2), Bool, 2.into()),
            (ValueRef::Integer(1), Integer, 1.into()),
            (ValueRef::Real(0.1), Numeric, Value::number("0.1")),
            (ValueRef::Text(b"1.50"), Decimal, Value::number("1.50")),
            (ValueRef::Text(b"5"), Decimal, 5.into()),
            (ValueRef::Text(b"x"), Decimal, "x".into()),
            (ValueRef::Text(b"1.50"), Text, "1.50".into()),
            (
                ValueRef::Text(b"2026-01-01T00:00:00.500000+00:00"),
                UniformMoment(windrow_core::Holds::Timestamptz),
                "2026-01-01T00:00:00.5Z".into(),
            ),
            (ValueRef::Text(b" [1]"), Json, Value::Json(" [1]".into())),
            (ValueRef::Text(b"[1"), Json, "[1".into()),
            (ValueRef::Text(b"true"), Json, true.into()),
            (
                ValueRef::Text(b"\"true\""),
                Json,
                Value::Json("\"true\"".into()),
            ),
            (
                ValueRef::Text(b"\"{}\""),
                Json,
                Value::Json("\"{}\"".into()),
            ),
            (ValueRef::Text(b"\"a"), Json, "\"a".into()),
            (ValueRef::Text(b"abc"), Json, "abc".into()),
            (ValueRef::Text(b"null"), Json, Value::Json("null".into())),
            (ValueRef::Integer(1), Json, 1.into()),
            (ValueRef::Text(b"[1]"), Text, "[1]".into()),
            (ValueRef::Text(b"\xff"), Text, vec![255].into()),
            (ValueRef::Blob(b"\x00"), Blob, vec![0].into()),
        ] {
            assert_eq!(value(stored, column_type), expected, "{stored:?}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        // Whatever is said of it, it comes back, and nothing overflows.
        drop(value(ValueRef::Text(deep.as_bytes()), Json));
    }
}
