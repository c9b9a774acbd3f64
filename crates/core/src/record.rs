//! Rows as JSON texts: the form in which dead letters keep a row, and in which a move names one.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::name::Name;
use crate::value::Value;

/// The nesting depth beyond which JSON is kept as a text. MariaDB reads at most 32 levels, and a
/// dead letter adds one. A row that no database accepts could not even become a dead letter.
const MOST_LEVELS: usize = 24;

/// The only member of the object that stands for a text that is not UTF-8: its bytes, in
/// hexadecimal.
pub const UNREADABLE: &str = "windrow_bytes";

/// The only member of a dead letter's row if the dead letter is a message instead of a row: its
/// text.
pub const MESSAGE: &str = "windrow_message";

/// Returns the object that stands for a text that is not UTF-8, with its bytes.
pub fn unreadable(bytes: &[u8]) -> Value {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut json = String::new();
    push_member(&mut json, UNREADABLE, &digits);
    Value::Json(json.into())
}

/// True for an object that [`unreadable`] has returned.
pub fn is_unreadable(json: &str) -> bool {
    let inner = json.trim().strip_prefix('{').unwrap_or_default();
    let behind = inner.trim_start().strip_prefix('"').unwrap_or_default();
    behind.starts_with(&format!("{UNREADABLE}\""))
}

/// Returns the row of a dead letter that keeps the beginning of another row's JSON, or of the
/// message there: at most `most` bytes of ASCII without control characters, which every database
/// takes.
pub fn beginning(row: &str, most: usize) -> String {
    let message = message_of(row);
    let mut left = most.saturating_sub(object_bytes());
    let mut plain = String::new();
    for character in message.as_deref().unwrap_or(row).chars() {
        let spelled: String = match character.is_ascii() && !character.is_ascii_control() {
            true => character.into(),
            false => character.escape_unicode().collect(),
        };
        let escaped = spelled.matches(['"', '\\']).count();
        let Some(rest) = left.checked_sub(spelled.len() + escaped) else {
            break;
        };
        left = rest;
        plain.push_str(&spelled);
    }
    let mut json = String::new();
    push_member(&mut json, MESSAGE, &plain);
    json
}

/// Returns the bytes of the object of an empty message.
fn object_bytes() -> usize {
    MESSAGE.len() + r#"{"":""}"#.len()
}

/// Returns the message that stands in the place of a row.
fn message_of(row: &str) -> Option<String> {
    let mut fields: BTreeMap<String, String> = serde_json::from_str(row).ok()?;
    let message = fields.remove(MESSAGE)?;
    fields.is_empty().then_some(message)
}

/// An array of values.
pub fn array<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let mut json = String::from("[");
    for (place, value) in values.into_iter().enumerate() {
        json.push_str(if place > 0 { "," } else { "" });
        push(&mut json, value);
    }
    json.push(']');
    json
}

/// Returns the name of a row: an array in which values that differ only in their type are written
/// differently.
pub fn name<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let mut json = String::from("[");
    for (place, value) in values.into_iter().enumerate() {
        json.push_str(if place > 0 { "," } else { "" });
        push_typed(&mut json, value);
    }
    json.push(']');
    json
}

/// Appends a value with its type: as JSON if JSON has a form of it, all others as an object of one
/// member.
pub fn push_typed(json: &mut String, value: &Value) {
    match value {
        Value::Number(digits) if !is_json(digits) => push_member(json, "number", digits),
        Value::Json(text) => push_member(json, "json", text),
        Value::Bytes(bytes) => push_member(json, "bytes", &STANDARD.encode(bytes)),
        other => push(json, other),
    }
}

/// Appends an object that describes a text.
pub fn push_member(json: &mut String, kind: &str, text: &str) {
    json.push_str("{\"");
    json.push_str(kind);
    json.push_str("\":");
    push_text(json, text);
    json.push('}');
}

/// Returns an object of columns and their values.
pub fn object<'v>(fields: impl IntoIterator<Item = (&'v Name, &'v Value)>) -> String {
    let mut json = String::from("{");
    for (place, (name, value)) in fields.into_iter().enumerate() {
        json.push_str(if place > 0 { "," } else { "" });
        push_text(&mut json, name);
        json.push(':');
        push(&mut json, value);
    }
    json.push('}');
    json
}

/// Appends a value. Numbers keep their digits; binary data is base64.
fn push(json: &mut String, value: &Value) {
    match value {
        Value::Null => json.push_str("null"),
        Value::Bool(truth) => json.push_str(if *truth { "true" } else { "false" }),
        Value::Int(n) => json.push_str(&n.to_string()),
        Value::Number(digits) if is_json(digits) => json.push_str(digits),
        Value::Json(text) if is_json(text) && levels(text) <= MOST_LEVELS => json.push_str(text),
        Value::Number(text) | Value::Json(text) | Value::Text(text) => push_text(json, text),
        Value::Bytes(bytes) => push_text(json, &STANDARD.encode(bytes)),
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

/// Returns the nesting depth of a JSON text.
fn levels(json: &str) -> usize {
    let (mut level, mut most) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => level += 1,
            b']' | b'}' => level = level.saturating_sub(1),
            _ => {}
        }
        most = level.max(most);
    }
    most
}

fn push_text(json: &mut String, text: &str) {
    // A text can always be serialized.
    json.push_str(&serde_json::to_string(text).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_types_apart() {
        let values = [
            Value::text("AP8="),
            Value::Bytes([0, 255].into()),
            Value::text("1.50"),
            Value::number("1.50"),
            Value::number("1_000"),
            Value::Json("[1]".into()),
            true.into(),
        ];
        assert_eq!(
            name(&values),
            r#"["AP8=",{"bytes":"AP8="},"1.50",1.50,{"number":"1_000"},{"json":"[1]"},true]"#
        );
    }

    #[test]
    fn json_that_is_nested_deep_is_kept_as_text() {
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let kept = |json: &str| array(&[Value::Json(json.into())]);
        let (fine, deep) = (nested(MOST_LEVELS), nested(MOST_LEVELS + 1));
        assert_eq!(kept(&fine), format!("[{fine}]"));
        assert_eq!(kept(&deep), format!("[\"{deep}\"]"));
        let brackets = format!(r#"["\"{deep}\"", [1], [2]]"#);
        assert_eq!(kept(&brackets), format!("[{brackets}]"));
    }

    #[test]
    fn a_text_that_is_not_utf_8_is_known_by_its_form() {
        let made = array(&[unreadable(&[0x78, 0xff])]);
        assert_eq!(made, r#"[{"windrow_bytes":"78ff"}]"#);
        for (json, is_made) in [
            (r#"{"windrow_bytes":"78ff"}"#, true),
            (r#"{"windrow_bytes" : "78ff"}"#, true),
            (r#"{"windrow_byte":"78ff"}"#, false),
            (r#""windrow_bytes""#, false),
            ("{}", false),
        ] {
            assert_eq!(is_unreadable(json), is_made, "{json}");
        }
    }

    #[test]
    fn the_beginning_of_a_row_is_a_message() {
        let row = "{\"a\":\"\u{f6}\u{1}\"}";
        let whole = r#"{"windrow_message":"{\"a\":\"\\u{f6}\\u{1}\"}"}"#;
        assert_eq!(beginning(row, 1_000), whole);
        // The beginning of a beginning is no message within a message.
        for most in (0..=whole.len()).rev() {
            let part = beginning(row, most);
            assert!(part.len() <= most.max(object_bytes()), "{part}");
            assert!(is_json(&part), "{part}");
            assert_eq!(beginning(&part, most), part);
        }
        assert_eq!(beginning(row, 0), r#"{"windrow_message":""}"#);
    }

    #[test]
    fn every_value_has_a_form() {
        let values = [
            Value::Null,
            true.into(),
            7.into(),
            Value::number("1.50"),
            Value::text("a\"b\n"),
            Value::Json("{\"a\": 1}".into()),
            Value::Json("[1".into()),
            Value::Bytes([0, 255].into()),
        ];
        assert_eq!(
            array(&values),
            r#"[null,true,7,1.50,"a\"b\n",{"a": 1},"[1","AP8="]"#
        );
        let names = ["a", "b\"c"].map(Name::from);
        assert_eq!(
            object(names.iter().zip(&values)),
            r#"{"a":null,"b\"c":true}"#
        );
    }
}
