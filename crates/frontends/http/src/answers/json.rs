//! Writes JSON directly: values keep their digits, and an answer is written once into one buffer.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windrow_core::{Fault, Returned, Value, WriteDone};

use crate::ack::Ack;

/// The position of an error in the request's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorPosition {
    pub(crate) line: Option<u64>,
    pub(crate) column: Option<u64>,
}

/// Appends a number.
pub fn number(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// Appends a JSON string, with its quotes (RFC 8259, section 7).
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest
        .iter()
        .position(|b| *b < 0x20 || *b == b'"' || *b == b'\\')
    {
        let (clean, from) = rest.split_at(at);
        out.extend_from_slice(clean);
        let Some((byte, behind)) = from.split_first() else {
            break;
        };
        escape(out, *byte);
        rest = behind;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        // Writing to a Vec cannot fail.
        _ => drop(write!(out, "\\u{byte:04x}")),
    }
}

/// Appends a value as JSON: numbers unchanged, binary data as base64, JSON unchanged.
pub fn value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(n) => out.extend_from_slice(itoa::Buffer::new().format(*n).as_bytes()),
        Value::Number(digits) if is_number(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::Number(text) | Value::Text(text) => string(out, text),
        Value::Bytes(bytes) => string(out, &STANDARD.encode(bytes)),
        Value::Json(text) => out.extend_from_slice(text.as_bytes()),
    }
}

/// True for a JSON number (RFC 8259, section 6). Any other text would break the answer.
fn is_number(text: &str) -> bool {
    let rest = text.strip_prefix('-').unwrap_or(text);
    rest.starts_with(|c: char| c.is_ascii_digit())
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

/// Appends a row as an object.
pub(crate) fn row(out: &mut Vec<u8>, returned: &Returned, row: &[Value]) {
    let names = returned.columns.iter().map(|name| &**name);
    object(out, names.zip(row));
}

/// Appends values with their names as an object.
pub(crate) fn object<'a>(out: &mut Vec<u8>, cells: impl Iterator<Item = (&'a str, &'a Value)>) {
    out.push(b'{');
    for (i, (column, cell)) in cells.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        string(out, column);
        out.push(b':');
        value(out, cell);
    }
    out.push(b'}');
}

/// Appends `"rows":1`, or `"accepted":1` if the spool has accepted it.
pub(crate) fn count(out: &mut Vec<u8>, ack: Ack, count: u64) {
    string(out, ack.counted());
    out.push(b':');
    number(out, count);
}

/// Appends what [`count`] does and, if a row was returned, `,"returned":{..}`; for several rows an
/// array of objects.
pub(crate) fn done(out: &mut Vec<u8>, ack: Ack, done: &WriteDone) {
    count(out, ack, done.rows);
    let Some(returned) = &done.returned else {
        return;
    };
    match returned.rows.as_slice() {
        [] => {}
        [one] => {
            out.extend_from_slice(b",\"returned\":");
            row(out, returned, one);
        }
        many => {
            out.extend_from_slice(b",\"returned\":");
            list(out, many, |out, one| row(out, returned, one));
        }
    }
}

/// Appends an array, with the elements that `write` appends.
pub(crate) fn list<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Appends `"error":{..}` without absent members.
pub(crate) fn error(out: &mut Vec<u8>, fault: &Fault, position: ErrorPosition) {
    out.extend_from_slice(b"\"error\":{\"code\":");
    string(out, &fault.code);
    out.extend_from_slice(b",\"message\":");
    string(out, &fault.message);
    for (name, text) in [
        ("detail", fault.detail()),
        ("hint", fault.hint()),
        ("constraint", fault.constraint()),
        ("table", fault.table()),
        ("column", fault.column()),
    ] {
        if let Some(text) = text {
            field(out, name);
            string(out, text);
        }
    }
    for (name, at) in [("line", position.line), ("line_column", position.column)] {
        if let Some(at) = at {
            field(out, name);
            number(out, at);
        }
    }
    out.push(b'}');
}

/// Appends `,"name":`.
pub fn field(out: &mut Vec<u8>, name: &str) {
    out.push(b',');
    string(out, name);
    out.push(b':');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_keep_their_digits_and_stay_json() {
        for (given, written) in [
            (Value::Int(-5), "-5"),
            (Value::Number("1.50".into()), "1.50"),
            (Value::Number("1e400".into()), "1e400"),
            (Value::Number("NaN".into()), "\"NaN\""),
            (Value::Number("1,5".into()), "\"1,5\""),
            (Value::Number("-".into()), "\"-\""),
            (Value::from(vec![0u8, 255]), "\"AP8=\""),
            (Value::Json("{\"a\":[1]}".into()), "{\"a\":[1]}"),
            (Value::Null, "null"),
        ] {
            assert_eq!(text(|out| value(out, &given)), written);
        }
    }

    #[test]
    fn an_error_leaves_out_what_is_absent() {
        let fault = Fault::invalid("no").with_constraint(Some("c"));
        let position = ErrorPosition {
            line: Some(3),
            column: None,
        };
        assert_eq!(
            text(|out| error(out, &fault, position)),
            "\"error\":{\"code\":\"22023\",\"message\":\"no\",\"constraint\":\"c\",\"line\":3}"
        );
    }

    proptest! {
        #[test]
        fn any_text_survives(given in any::<String>()) {
            let written = text(|out| string(out, &given));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), given);
        }
    }
}
