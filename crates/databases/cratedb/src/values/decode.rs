//! Decodes returned values.

use windrow_core::Value;

use super::moment;
use crate::values::column::Kind;

/// Returns the value of a column from its JSON text.
pub(crate) fn value(kind: Kind, raw: &str) -> Value {
    match raw.as_bytes().first() {
        Some(b'n') => Value::Null,
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'"') => Value::Text(text(raw).into()),
        Some(b'{' | b'[') => Value::Json(raw.into()),
        _ => number(kind, raw),
    }
}

fn number(kind: Kind, raw: &str) -> Value {
    let Kind::Timestamp { zoned } = kind else {
        return Value::number(raw);
    };
    let iso = raw
        .parse()
        .ok()
        .and_then(|millis| moment::iso(millis, zoned));
    iso.map_or_else(|| Value::number(raw), Value::text)
}

/// Decodes a JSON string.
pub(crate) fn text(raw: &str) -> String {
    serde_json::from_str(raw).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went_in() {
        assert_eq!(
            value(Kind::Text, "\"a\\n\\u00e9\""),
            Value::text("a\n\u{e9}")
        );
        assert_eq!(value(Kind::Int(i64::MAX), "-5"), Value::Int(-5));
        assert_eq!(value(Kind::Float, "0.1"), Value::Number("0.1".into()));
        assert_eq!(value(Kind::Numeric, "1.50"), Value::Number("1.50".into()));
        assert_eq!(
            value(Kind::Object, "{\"a\":1}"),
            Value::Json("{\"a\":1}".into())
        );
        assert_eq!(value(Kind::Bool, "true"), Value::Bool(true));
        assert_eq!(value(Kind::Text, "null"), Value::Null);
        let zoned = Kind::Timestamp { zoned: true };
        assert_eq!(
            value(zoned, "1357020000500"),
            Value::text("2013-01-01T06:00:00.5Z")
        );
        assert_eq!(value(zoned, "9223372036854775807"), Value::Int(i64::MAX));
    }
}
