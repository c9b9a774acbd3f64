//! Decodes the values that the server returns as text.

use windrow_core::Value;

use crate::catalog::column::Kind;

/// Returns the value of a column that was requested in text.
pub(crate) fn value(kind: &Kind, text: Option<&[u8]>) -> Value {
    let Some(bytes) = text else {
        return Value::Null;
    };
    let text = String::from_utf8_lossy(bytes);
    match kind {
        Kind::Bool => Value::Bool(bytes == b"t"),
        Kind::Int2 | Kind::Int4 | Kind::Int8 => Value::number(&text),
        Kind::Float4 | Kind::Float8 | Kind::Numeric => number(&text),
        Kind::Json | Kind::Jsonb | Kind::Array(..) | Kind::Composite => Value::Json(text.into()),
        Kind::Bytea => bytea(&text),
        Kind::Timestamp | Kind::Timestamptz => Value::Text(iso(&text).into()),
        Kind::Text | Kind::Char | Kind::Uuid | Kind::Date | Kind::Enum(_) | Kind::Other => {
            Value::Text(text.into())
        }
    }
}

/// Reads a number. `NaN` and `Infinity` become texts, because other systems do not have them as
/// numbers.
fn number(text: &str) -> Value {
    match text.bytes().last() {
        Some(b'0'..=b'9') => Value::number(text),
        _ => Value::text(text),
    }
}

/// Reads a `bytea`: `\x` and hexadecimal digits, the form that Windrow's sessions set.
fn bytea(text: &str) -> Value {
    let digits = text.strip_prefix("\\x").unwrap_or_default();
    let digit = |b: &u8| {
        char::from(*b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.map_or_else(|| Value::text(text), Value::from)
}

/// Returns a moment such as `2013-01-01 06:00:00+00` in ISO 8601. Infinity and years before Christ
/// stay as they are.
fn iso(text: &str) -> String {
    let spaced = text.as_bytes().get(10) == Some(&b' ');
    let digits = text.bytes().next().is_some_and(|b| b.is_ascii_digit());
    if !spaced || !digits || text.ends_with("BC") {
        return text.to_owned();
    }
    let mut iso = text.replacen(' ', "T", 1);
    if let Some(local) = iso.strip_suffix("+00") {
        iso = format!("{local}Z");
    }
    iso
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &Kind, text: &str) -> Value {
        value(kind, Some(text.as_bytes()))
    }

    #[test]
    fn values_come_back_as_they_went_in() {
        assert_eq!(read(&Kind::Int8, "-5"), Value::Int(-5));
        assert_eq!(read(&Kind::Numeric, "1.50"), Value::Number("1.50".into()));
        assert_eq!(read(&Kind::Float8, "NaN"), Value::text("NaN"));
        assert_eq!(read(&Kind::Float8, "1e+20"), Value::Number("1e+20".into()));
        assert_eq!(read(&Kind::Bytea, "\\x00ff"), Value::Bytes([0, 255].into()));
        assert_eq!(read(&Kind::Bool, "f"), Value::Bool(false));
        assert_eq!(
            read(&Kind::Timestamptz, "2013-01-01 06:00:00.5+00"),
            Value::text("2013-01-01T06:00:00.5Z")
        );
        assert_eq!(
            read(&Kind::Timestamp, "2013-01-01 06:00:00"),
            Value::text("2013-01-01T06:00:00")
        );
        assert_eq!(
            read(&Kind::Timestamptz, "infinity"),
            Value::text("infinity")
        );
        assert_eq!(value(&Kind::Int4, None), Value::Null);
    }
}
