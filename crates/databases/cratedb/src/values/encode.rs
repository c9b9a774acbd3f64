//! Encodes a value for a request.
//!
//! CrateDB itself converts values to the column's type, and a text to every type. So a value is
//! written in JSON's own type only if that loses nothing: the server's parser reads decimals as
//! doubles, and would drop the fraction of a number for a column of integers.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windrow_core::Value;
use windrow_database::decimal;
use windrow_database::web::{is_json, push_text};

use crate::values::column::{Column, Kind};

/// Why a value cannot be written into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unwritable(pub(crate) &'static str);

/// Checks that a value can be written.
pub(crate) fn check(kind: Kind, value: &Value) -> Result<(), Unwritable> {
    match (kind, value) {
        (Kind::Float, Value::Number(_)) | (_, Value::Json(_)) => push(kind, value, &mut Vec::new()),
        _ => Ok(()),
    }
}

/// Appends the value as JSON.
pub(crate) fn push(kind: Kind, value: &Value, out: &mut Vec<u8>) -> Result<(), Unwritable> {
    match (kind, value) {
        (_, Value::Null) => out.extend_from_slice(b"null"),
        (Kind::Int(_), _) if int(value).is_some() => {
            write!(out, "{}", int(value).unwrap_or_default()).ok();
        }
        (Kind::Float, Value::Int(n)) => {
            write!(out, "{n}.0").ok();
        }
        (Kind::Float, Value::Number(digits)) => push_float(digits, out)?,
        (Kind::Numeric | Kind::Text, Value::Int(n)) => {
            write!(out, "\"{n}\"").ok();
        }
        (Kind::Text, Value::Bool(b)) => push_text(out, if *b { "true" } else { "false" }),
        (Kind::Text, Value::Json(json)) => push_text(out, json),
        (_, Value::Bool(b)) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        (_, Value::Int(n)) => {
            write!(out, "{n}").ok();
        }
        (Kind::Other, Value::Number(digits)) if is_json(digits) => {
            out.extend_from_slice(digits.as_bytes());
        }
        (_, Value::Number(text) | Value::Text(text)) => push_text(out, text),
        (_, Value::Bytes(bytes)) => push_text(out, &STANDARD.encode(bytes)),
        (_, Value::Json(json)) if is_json(json) => out.extend_from_slice(json.as_bytes()),
        (_, Value::Json(_)) => return Err(Unwritable("it is not valid JSON")),
    }
    Ok(())
}

/// Appends a double, unless Java would silently read it as infinite or zero.
fn push_float(digits: &str, out: &mut Vec<u8>) -> Result<(), Unwritable> {
    let Ok(double) = digits.parse::<f64>() else {
        push_text(out, digits);
        return Ok(());
    };
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    let vanishes = double == 0.0 && mantissa.bytes().any(|b| (b'1'..=b'9').contains(&b));
    if !double.is_finite() || vanishes {
        return Err(Unwritable("it is out of the range of a double"));
    }
    if !is_json(digits) {
        push_text(out, digits);
        return Ok(());
    }
    out.extend_from_slice(digits.as_bytes());
    if !digits.contains(['.', 'e', 'E']) {
        out.extend_from_slice(b".0");
    }
    Ok(())
}

/// Returns an integer, also from a text of digits.
pub(crate) fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        Value::Number(digits) | Value::Text(digits) => {
            let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'-');
            plain.then(|| digits.parse().ok()).flatten()
        }
        _ => None,
    }
}

/// Returns true if the server would probably refuse the value, and with it the whole bulk. A wrong
/// guess costs a request, but causes no wrong answer.
pub(crate) fn is_suspect(column: &Column, value: &Value) -> bool {
    match (column.kind, value) {
        (_, Value::Null) => column.not_null,
        (Kind::Int(most), _) => int(value).is_none_or(|n| n > most || n < -most - 1),
        (Kind::Float | Kind::Numeric, Value::Text(text)) => !decimal::is_number(text),
        (Kind::Float | Kind::Numeric, Value::Int(_) | Value::Number(_)) => false,
        (Kind::Float | Kind::Numeric, _) => true,
        (Kind::Bool, Value::Text(text)) => !matches!(&**text, "true" | "false" | "t" | "f"),
        (Kind::Bool, Value::Bool(_)) => false,
        (Kind::Bool, _) => true,
        (Kind::Timestamp { .. }, Value::Text(text)) => !text.bytes().any(|b| b.is_ascii_digit()),
        (Kind::Object, Value::Json(json)) => !json.trim_start().starts_with('{'),
        (Kind::Array, Value::Json(json)) => !json.trim_start().starts_with('['),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(kind: Kind, value: impl Into<Value>) -> String {
        let mut out = Vec::new();
        push(kind, &value.into(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn number(digits: &str) -> Value {
        Value::Number(digits.into())
    }

    const LONG: Kind = Kind::Int(i64::MAX);

    #[test]
    fn nothing_is_lost_on_the_way() {
        assert_eq!(json(LONG, "007"), "7");
        assert_eq!(json(LONG, number("1.5")), "\"1.5\"");
        assert_eq!(json(LONG, "x\""), "\"x\\\"\"");
        assert_eq!(json(Kind::Float, 1), "1.0");
        assert_eq!(json(Kind::Float, number("1e3")), "1e3");
        assert_eq!(
            json(Kind::Float, number("18446744073709551616")),
            "18446744073709551616.0"
        );
        assert_eq!(json(Kind::Numeric, number("0.10")), "\"0.10\"");
        assert_eq!(json(Kind::Text, number("0.10")), "\"0.10\"");
        assert_eq!(json(Kind::Text, Value::Json("[1]".into())), "\"[1]\"");
        assert_eq!(
            json(Kind::Object, Value::Json("{\"a\":1}".into())),
            "{\"a\":1}"
        );
        assert_eq!(json(Kind::Other, vec![0, 255]), "\"AP8=\"");
        assert_eq!(json(Kind::Bool, true), "true");
        assert_eq!(json(Kind::Bool, Value::Null), "null");
        for odd in ["1e400", "1e-400"] {
            assert!(
                push(Kind::Float, &number(odd), &mut Vec::new()).is_err(),
                "{odd}"
            );
        }
        assert!(push(Kind::Object, &Value::Json("{".into()), &mut Vec::new()).is_err());
    }

    #[test]
    fn what_would_spoil_a_bulk_is_seen() {
        let column = |kind, not_null| Column {
            name: "c".into(),
            kind,
            not_null,
        };
        assert!(is_suspect(&column(LONG, false), &"x".into()));
        assert!(is_suspect(&column(Kind::Int(127), false), &128.into()));
        assert!(!is_suspect(&column(Kind::Int(127), false), &(-128).into()));
        assert!(is_suspect(&column(Kind::Text, true), &Value::Null));
        assert!(!is_suspect(&column(Kind::Text, false), &Value::Null));
        assert!(is_suspect(&column(Kind::Float, false), &"x".into()));
        assert!(is_suspect(&column(Kind::Bool, false), &1.into()));
        assert!(is_suspect(
            &column(Kind::Array, false),
            &Value::Json("{}".into())
        ));
    }
}
