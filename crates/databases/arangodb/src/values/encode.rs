//! Encodes values as JSON.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windrow_core::Value;
use windrow_database::decimal;
use windrow_database::web::{is_json, push_text};

/// Why a value cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unwritable(pub(crate) &'static str);

/// Checks that a value can be written.
pub(crate) fn check(value: &Value) -> Result<(), Unwritable> {
    match value {
        Value::Number(_) | Value::Json(_) => push(value, &mut Vec::new()),
        _ => Ok(()),
    }
}

/// Appends the value as JSON. ArangoDB stores integers of 64 bits and doubles; a number that
/// neither holds exactly is refused.
pub(crate) fn push(value: &Value, out: &mut Vec<u8>) -> Result<(), Unwritable> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::Int(n) => {
            write!(out, "{n}").ok();
        }
        Value::Number(digits) if !is_json(digits) => {
            return Err(Unwritable("it is not a JSON number"));
        }
        Value::Number(digits) if digits.parse::<u64>().is_ok() || decimal::is_double(digits) => {
            out.extend_from_slice(digits.as_bytes());
        }
        Value::Number(_) => {
            return Err(Unwritable(
                "it has more digits than ArangoDB keeps of a number; send it as a text to keep them all",
            ));
        }
        Value::Text(text) => push_text(out, text),
        Value::Bytes(bytes) => push_text(out, &STANDARD.encode(bytes)),
        Value::Json(json) if is_json(json) => out.extend_from_slice(json.as_bytes()),
        Value::Json(_) => return Err(Unwritable("it is not valid JSON")),
    }
    Ok(())
}

/// Returns a value as a key, which is a string; `None` if no document can have that key.
pub(crate) fn key(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) | Value::Number(text) => Some(text.to_string()),
        Value::Int(n) => Some(n.to_string()),
        Value::Bool(b) => Some(b.to_string()),
        Value::Null | Value::Bytes(_) | Value::Json(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: impl Into<Value>) -> Result<String, Unwritable> {
        let mut out = Vec::new();
        push(&value.into(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn values_keep_their_digits_or_are_refused() {
        let number = |digits: &str| Value::Number(digits.into());
        assert_eq!(json(number("0.1")).unwrap(), "0.1");
        assert_eq!(
            json(number("18446744073709551615")).unwrap(),
            "18446744073709551615"
        );
        assert!(json(number("18446744073709551616123")).is_err());
        assert!(json(number("1e400")).is_err());
        assert!(json(number("+1")).is_err());
        assert_eq!(json(i64::MIN).unwrap(), "-9223372036854775808");
        assert_eq!(json(vec![0, 255]).unwrap(), "\"AP8=\"");
        assert_eq!(
            json(Value::Json("{\"a\":[]}".into())).unwrap(),
            "{\"a\":[]}"
        );
        assert!(json(Value::Json("{".into())).is_err());
    }
}
