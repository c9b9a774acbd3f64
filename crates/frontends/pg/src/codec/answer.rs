//! Writes a server's messages.

use bytes::{BufMut, BytesMut};
use windrow_core::{Formats, Op, Signature};

/// ParseComplete.
pub(crate) const PARSE_COMPLETE: &[u8] = b"1\0\0\0\x04";
/// BindComplete.
pub(crate) const BIND_COMPLETE: &[u8] = b"2\0\0\0\x04";
/// CloseComplete.
pub(crate) const CLOSE_COMPLETE: &[u8] = b"3\0\0\0\x04";
/// NoData.
pub(crate) const NO_DATA: &[u8] = b"n\0\0\0\x04";
/// EmptyQueryResponse.
pub(crate) const EMPTY_QUERY: &[u8] = b"I\0\0\0\x04";
/// ReadyForQuery outside of a transaction.
pub(crate) const READY: &[u8] = b"Z\0\0\0\x05I";

/// The OID of the type `int8`.
const INT8: u32 = 20;
/// The OID of the type `text`.
const TEXT: u32 = 25;

/// Writes a message: tag, length, body.
pub(crate) fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(tag);
    let start = out.len();
    out.put_i32(0);
    body(out);
    // A body is far below 2 GiB, because its contents were limited when they were received.
    let length = i32::try_from(out.len() - start).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// Writes a text and its terminating zero byte.
pub(crate) fn text(out: &mut BytesMut, text: &[u8]) {
    out.put_slice(text);
    out.put_u8(0);
}

/// Writes ReadyForQuery: `I` idle, `T` in a transaction, `E` in a failed one.
pub(crate) fn ready(out: &mut BytesMut, status: u8) {
    message(out, b'Z', |out| out.put_u8(status));
}

/// Writes ParameterDescription.
pub(crate) fn parameters(out: &mut BytesMut, types: &[u32]) {
    message(out, b't', |out| {
        out.put_u16(u16::try_from(types.len()).unwrap_or(u16::MAX));
        types.iter().for_each(|oid| out.put_u32(*oid));
    });
}

/// Writes RowDescription with these formats, from a body in which all formats are text; NoData
/// without a body.
pub(crate) fn fields(out: &mut BytesMut, body: Option<&[u8]>, formats: &Formats) {
    let Some(body) = body else {
        return out.put_slice(NO_DATA);
    };
    let start = out.len();
    message(out, b'T', |out| out.put_slice(body));
    if *formats != Formats::Text
        && let Some(body) = out.get_mut(start + 5..)
    {
        set_formats(body, formats);
    }
}

/// Writes formats into a RowDescription's body.
fn set_formats(body: &mut [u8], formats: &Formats) {
    let count = columns(body);
    let mut rest = body.get_mut(2..).unwrap_or_default();
    for place in 0..count {
        let Some(name) = memchr::memchr(0, rest) else {
            return;
        };
        // After the name: table, column, type, size, modifier.
        let format = name + 1 + 4 + 2 + 4 + 2 + 4;
        let Some((head, behind)) = rest.split_at_mut_checked(format + 2) else {
            return;
        };
        if let Some(code) = head.get_mut(format..) {
            code.copy_from_slice(&u16::from(formats.is_binary(place)).to_be_bytes());
        }
        rest = behind;
    }
}

/// Writes complete messages, with the types of `after` wherever they describe a statement with the
/// types of `before`.
pub(crate) fn described_again(
    out: &mut BytesMut,
    mut messages: &[u8],
    before: &Signature,
    after: &Signature,
) {
    while let [tag, a, b, c, d, ..] = messages {
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        let whole = usize::try_from(length).unwrap_or(usize::MAX);
        let (message, rest) = messages
            .split_at_checked(whole.saturating_add(1))
            .unwrap_or((messages, &[]));
        let body = message.get(5..).unwrap_or_default();
        match tag {
            b't' if oids(body).eq(before.parameters.iter().copied()) => {
                parameters(out, &after.parameters);
            }
            b'n' if before.fields.is_none() => {
                fields(out, after.fields.as_deref(), &Formats::Text);
            }
            b'T' if before.same_rows(&rows(body)) => {
                fields(out, after.fields.as_deref(), &formats(body));
            }
            _ => out.put_slice(message),
        }
        messages = rest;
    }
}

/// Returns the types in the body of a ParameterDescription.
pub(crate) fn oids(body: &[u8]) -> impl Iterator<Item = u32> {
    let oids = body.get(2..).unwrap_or_default().as_chunks().0.iter();
    oids.map(|oid| u32::from_be_bytes(*oid))
}

/// Returns the signature of a statement with these result columns.
fn rows(body: &[u8]) -> Signature {
    Signature {
        parameters: Box::default(),
        fields: Some(body.into()),
    }
}

/// Returns the formats in a RowDescription's body.
fn formats(body: &[u8]) -> Formats {
    let mut rest = body.get(2..).unwrap_or_default();
    let mut each = Vec::with_capacity(columns(body));
    while let Some(name) = memchr::memchr(0, rest)
        && let Some((column, behind)) = rest.split_at_checked(name + 1 + 18)
    {
        each.push(column.ends_with(&[0, 1]));
        rest = behind;
    }
    Formats::of(each.into_iter())
}

/// Returns the number of columns of a RowDescription's body.
pub(crate) fn columns(body: &[u8]) -> usize {
    match body {
        [a, b, ..] => usize::from(u16::from_be_bytes([*a, *b])),
        _ => 0,
    }
}

/// Writes CommandComplete of a write.
#[inline]
pub(crate) fn command_complete(out: &mut BytesMut, op: Op, rows: u64) {
    let word: &[u8] = match op {
        Op::Insert => b"INSERT 0 ",
        Op::Update => b"UPDATE ",
        Op::Delete => b"DELETE ",
        Op::Get => b"SELECT ",
    };
    message(out, b'C', |out| {
        out.put_slice(word);
        decimal(out, rows);
        out.put_u8(0);
    });
}

/// Writes CommandComplete with any tag.
pub(crate) fn complete(out: &mut BytesMut, tag: &str) {
    message(out, b'C', |out| text(out, tag.as_bytes()));
}

fn decimal(out: &mut BytesMut, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    for place in digits.iter_mut().rev() {
        *place = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        at -= 1;
        if number == 0 {
            break;
        }
    }
    out.put_slice(digits.get(at..).unwrap_or_default());
}

/// Returns the body of a RowDescription of one column: int8 or text.
pub(crate) fn one_field(name: &str, is_int8: bool) -> Box<[u8]> {
    let mut body = BytesMut::new();
    body.put_u16(1);
    text(&mut body, name.as_bytes());
    body.put_u32(0);
    body.put_u16(0);
    body.put_u32(if is_int8 { INT8 } else { TEXT });
    body.put_i16(if is_int8 { 8 } else { -1 });
    body.put_i32(-1);
    body.put_u16(0);
    body.as_ref().into()
}

/// Writes a DataRow of one column.
pub(crate) fn one_value(out: &mut BytesMut, value: &[u8]) {
    message(out, b'D', |out| {
        out.put_u16(1);
        out.put_i32(i32::try_from(value.len()).unwrap_or(i32::MAX));
        out.put_slice(value);
    });
}

/// Writes a DataRow of one int8, and CommandComplete of its SELECT.
pub(crate) fn number(out: &mut BytesMut, number: i64, binary: bool) {
    if binary {
        one_value(out, &number.to_be_bytes());
    } else {
        one_value(out, number.to_string().as_bytes());
    }
    complete(out, "SELECT 1");
}

/// Writes ParameterStatus.
pub(crate) fn parameter_status(out: &mut BytesMut, name: &str, value: &str) {
    message(out, b'S', |out| {
        text(out, name.as_bytes());
        text(out, value.as_bytes());
    });
}
