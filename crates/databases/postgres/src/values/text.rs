//! Writes a value as the text that its column's input function reads.
//!
//! All statements use the same function: those of one write and set-based ones get the same text,
//! or ([`super::encode`]) the same value in binary. The meaning of a value for a type is decided
//! here:
//!
//! - a text in a `json` column is a JSON string; arrays, objects, numbers and booleans stay as they
//!   are;
//! - a text in a `bytea` column is base64, or PostgreSQL's own `\x` hexadecimal form;
//! - a JSON array in an array column becomes PostgreSQL's array literal; a text must be such a
//!   literal already.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use windrow_core::Value;

use crate::catalog::column::Kind;

/// A value without a text form, so that the server cannot be asked about it. Contains the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unwritable(pub(crate) String);

type Written = Result<(), Unwritable>;

/// Appends the text of a value that is not NULL.
pub(crate) fn push(kind: &Kind, value: &Value, out: &mut Vec<u8>) -> Written {
    match (kind, value) {
        (Kind::Bytea, Value::Text(text)) => push_base64(text, out)?,
        (Kind::Json | Kind::Jsonb, Value::Text(text)) => push_json_string(text, out)?,
        (Kind::Json | Kind::Jsonb, Value::Bytes(bytes)) => {
            push_json_string(&STANDARD.encode(bytes), out)?;
        }
        (Kind::Uuid, Value::Bytes(bytes)) => push_digits(bytes, out),
        (Kind::Array(element, delimiter), Value::Json(json)) => {
            push_array(element, *delimiter, json, out)?;
        }
        _ => push_plain(value, out),
    }
    Ok(())
}

/// Appends the text of a key's value that is spelled as in a URL's path
/// ([`windrow_core::Shape::spelled`]). Of the types of keys, only `jsonb` has values of several
/// kinds.
pub(crate) fn push_spelled(kind: &Kind, value: &Value, out: &mut Vec<u8>) -> Written {
    match (kind, value) {
        (Kind::Jsonb, Value::Text(text)) if is_json(text) => {
            push_plain(value, out);
            Ok(())
        }
        _ => push(kind, value, out),
    }
}

/// Returns true if the text is JSON other than `null`, which would be no value. Any other text is
/// used as it stands.
fn is_json(text: &str) -> bool {
    text.trim() != "null" && serde_json::from_str::<&RawValue>(text).is_ok()
}

fn push_plain(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(n) => out.extend_from_slice(itoa::Buffer::new().format(*n).as_bytes()),
        Value::Number(text) | Value::Text(text) | Value::Json(text) => {
            out.extend_from_slice(text.as_bytes());
        }
        Value::Bytes(bytes) => push_hex(bytes, out),
    }
}

fn push_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    push_digits(bytes, out);
}

fn push_digits(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    for byte in bytes {
        let digit = |n: u8| DIGITS.get(usize::from(n)).copied().unwrap_or_default();
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
}

fn push_base64(text: &str, out: &mut Vec<u8>) -> Written {
    if text.starts_with("\\x") {
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    }
    push_hex(&decode_base64(text)?, out);
    Ok(())
}

/// Returns the bytes of a text in a `bytea` column that is not in hexadecimal form.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, Unwritable> {
    STANDARD.decode(text).map_err(|error| {
        Unwritable(format!(
            "binary data must be base64 with padding, or hexadecimal digits after \\x: {error}"
        ))
    })
}

fn push_json_string(text: &str, out: &mut Vec<u8>) -> Written {
    serde_json::to_writer(out, text).map_err(|error| Unwritable(error.to_string()))
}

/// Appends a JSON array as an array literal. Nested arrays are further dimensions, unless the
/// elements are JSON themselves.
fn push_array(element: &Kind, delimiter: u8, json: &str, out: &mut Vec<u8>) -> Written {
    let items: Vec<&RawValue> = serde_json::from_str(json)
        .map_err(|error| Unwritable(format!("an array is expected: {error}")))?;
    out.push(b'{');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(delimiter);
        }
        push_element(element, delimiter, item.get(), out)?;
    }
    out.push(b'}');
    Ok(())
}

fn push_element(element: &Kind, delimiter: u8, json: &str, out: &mut Vec<u8>) -> Written {
    let is_json = matches!(element, Kind::Json | Kind::Jsonb);
    match json.as_bytes().first() {
        Some(b'n') => out.extend_from_slice(b"NULL"),
        Some(b'[') if !is_json => push_array(element, delimiter, json, out)?,
        Some(b'"') => {
            let text: String =
                serde_json::from_str(json).map_err(|error| Unwritable(error.to_string()))?;
            push_quoted(element, &Value::Text(text.into()), out)?;
        }
        Some(b'{' | b'[') => push_quoted(element, &Value::Json(json.into()), out)?,
        // Numbers, true and false are the same in JSON and in a literal.
        _ => out.extend_from_slice(json.as_bytes()),
    }
    Ok(())
}

/// Appends an element of an array literal, in quotes, with `"` and `\` escaped.
pub(crate) fn push_quoted(kind: &Kind, value: &Value, out: &mut Vec<u8>) -> Written {
    out.push(b'"');
    let start = out.len();
    push(kind, value, out)?;
    let special = |b: &u8| matches!(b, b'"' | b'\\');
    if let Some(plain) = out.get(start..).and_then(|t| t.iter().position(special)) {
        let rest = out.split_off(start + plain);
        for b in rest {
            if special(&b) {
                out.push(b'\\');
            }
            out.push(b);
        }
    }
    out.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn text(kind: &Kind, value: &Value) -> String {
        let mut out = Vec::new();
        push(kind, value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn array(element: Kind, json: &str) -> String {
        text(
            &Kind::Array(Box::new(element), b','),
            &Value::Json(json.into()),
        )
    }

    #[test]
    fn values_are_spelled_for_their_column() {
        assert_eq!(text(&Kind::Int4, &Value::Int(-5)), "-5");
        assert_eq!(text(&Kind::Numeric, &Value::Number("1.50".into())), "1.50");
        assert_eq!(text(&Kind::Jsonb, &Value::text("a\"b")), r#""a\"b""#);
        assert_eq!(text(&Kind::Json, &Value::Json("[1, 2]".into())), "[1, 2]");
        let uuid = Value::Bytes([0xab; 16].into());
        assert_eq!(text(&Kind::Uuid, &uuid), "ab".repeat(16));
        assert_eq!(text(&Kind::Bytea, &Value::text("aGk=")), "\\x6869");
        assert_eq!(text(&Kind::Bytea, &Value::text("\\x6869")), "\\x6869");
        assert_eq!(
            text(&Kind::Bytea, &Value::Bytes([0, 255].into())),
            "\\x00ff"
        );
    }

    #[test]
    fn json_arrays_become_literals() {
        assert_eq!(array(Kind::Int4, "[1, null,-3]"), "{1,NULL,-3}");
        assert_eq!(array(Kind::Int4, "[[1,2],[3,4]]"), "{{1,2},{3,4}}");
        assert_eq!(array(Kind::Int4, " [ ] "), "{}");
        assert_eq!(
            array(Kind::Text, r#"["a\"b", "", "null", "x,y\\z", "\u00e9"]"#),
            r#"{"a\"b","","null","x,y\\z","é"}"#
        );
        assert_eq!(
            array(Kind::Jsonb, r#"[[1],{"a":1}]"#),
            r#"{"[1]","{\"a\":1}"}"#
        );
        assert_eq!(array(Kind::Bytea, r#"["aGk="]"#), r#"{"\\x6869"}"#);
        let mood = Kind::Enum(Arc::from([Box::from("so so")]));
        assert_eq!(array(mood, r#"["so so"]"#), r#"{"so so"}"#);
    }

    #[test]
    fn what_has_no_text_is_refused() {
        let mut out = Vec::new();
        assert!(push(&Kind::Bytea, &Value::text("a b"), &mut out).is_err());
        let ints = Kind::Array(Box::new(Kind::Int4), b',');
        assert!(push(&ints, &Value::Json("{\"a\":1}".into()), &mut out).is_err());
    }
}
