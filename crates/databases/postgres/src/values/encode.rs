//! Encodes one column of many rows as one array parameter, straight into the send buffer.

use bytes::{BufMut, BytesMut};
use windrow_core::Value;

use super::{scalar, text};
use crate::catalog::column::{ArrayForm, Column, Kind, oid};

/// Reports that a value that was thought to fit cannot be encoded, or that an array is too large
/// for the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

/// Appends the values of a column, in their order, as the body of a parameter.
pub(crate) fn push_array<'a>(
    column: &Column,
    values: impl Iterator<Item = &'a Value>,
    scratch: &mut Vec<u8>,
    out: &mut BytesMut,
) -> Result<(), Unfit> {
    match column.form {
        ArrayForm::Alone => Err(Unfit),
        ArrayForm::Literal => push_literal(column, values, scratch, out),
        ArrayForm::Cast => push_binary(oid::TEXT, values, out, |value, out| {
            scratch.clear();
            text::push(&column.kind, value, scratch).ok()?;
            out.extend_from_slice(scratch);
            Some(())
        }),
        ArrayForm::Binary => push_of_kind(column, values, scratch, out),
    }
}

fn push_of_kind<'a>(
    column: &Column,
    values: impl Iterator<Item = &'a Value>,
    scratch: &mut Vec<u8>,
    out: &mut BytesMut,
) -> Result<(), Unfit> {
    let base = column.base_oid;
    match &column.kind {
        Kind::Int2 => push_binary(base, values, out, |v, out| {
            out.put_i16(i16::try_from(scalar::int(v)?).ok()?);
            Some(())
        }),
        Kind::Int4 => push_binary(base, values, out, |v, out| {
            out.put_i32(i32::try_from(scalar::int(v)?).ok()?);
            Some(())
        }),
        Kind::Int8 => push_binary(base, values, out, |v, out| {
            out.put_i64(scalar::int(v)?);
            Some(())
        }),
        Kind::Float4 => push_binary(base, values, out, |v, out| {
            out.put_f32(scalar::single(v)?);
            Some(())
        }),
        Kind::Float8 => push_binary(base, values, out, |v, out| {
            out.put_f64(scalar::double(v)?);
            Some(())
        }),
        Kind::Timestamptz => push_binary(base, values, out, |v, out| {
            out.put_i64(scalar::moment(v)?.utc());
            Some(())
        }),
        Kind::Timestamp => push_binary(base, values, out, |v, out| {
            out.put_i64(scalar::moment(v)?.local());
            Some(())
        }),
        kind => push_binary(base, values, out, |v, out| {
            push_other(kind, v, scratch, out)
        }),
    }
}

/// Appends the binary forms of the less common types (`typsend` and `typreceive` of each).
fn push_other(kind: &Kind, value: &Value, scratch: &mut Vec<u8>, out: &mut BytesMut) -> Option<()> {
    match (kind, value) {
        (Kind::Bool, _) => out.put_u8(u8::from(scalar::boolean(value)?)),
        (Kind::Date, _) => out.put_i32(scalar::date(value)?),
        (Kind::Uuid, _) => out.put_slice(&scalar::uuid(value)?),
        (Kind::Bytea, Value::Bytes(bytes)) => out.put_slice(bytes),
        (Kind::Bytea, Value::Text(base64)) => {
            out.put_slice(&text::decode_base64(base64).ok()?);
        }
        (Kind::Bytea, _) => return None,
        (Kind::Text | Kind::Char, Value::Text(plain)) => out.put_slice(plain.as_bytes()),
        _ => {
            if *kind == Kind::Jsonb {
                // The version of jsonb's binary form.
                out.put_u8(1);
            }
            scratch.clear();
            text::push(kind, value, scratch).ok()?;
            out.put_slice(scratch);
        }
    }
    Some(())
}

/// Appends an array as `array_recv` of `src/backend/utils/adt/arrayfuncs.c` reads it: dimensions, a
/// flag, the element type, length and lower bound, then each element with its length.
fn push_binary<'a>(
    element: postgres_protocol::Oid,
    values: impl Iterator<Item = &'a Value>,
    out: &mut BytesMut,
    mut push: impl FnMut(&Value, &mut BytesMut) -> Option<()>,
) -> Result<(), Unfit> {
    out.put_i32(1);
    // The server ignores the flag for NULLs.
    out.put_i32(1);
    out.put_u32(element);
    let length_at = out.len();
    out.put_i32(0);
    out.put_i32(1);
    let mut length = 0;
    for value in values {
        length += 1;
        if value.is_null() {
            out.put_i32(-1);
            continue;
        }
        let at = out.len();
        out.put_i32(0);
        push(value, out).ok_or(Unfit)?;
        let size = out.len() - at - size_of::<i32>();
        put_i32_at(out, at, size)?;
    }
    put_i32_at(out, length_at, length)
}

fn push_literal<'a>(
    column: &Column,
    values: impl Iterator<Item = &'a Value>,
    scratch: &mut Vec<u8>,
    out: &mut BytesMut,
) -> Result<(), Unfit> {
    out.put_u8(b'{');
    for (place, value) in values.enumerate() {
        if place > 0 {
            out.put_u8(column.delimiter);
        }
        match value {
            Value::Null => out.put_slice(b"NULL"),
            Value::Int(n) => out.put_slice(itoa::Buffer::new().format(*n).as_bytes()),
            _ => {
                scratch.clear();
                text::push_quoted(&column.kind, value, scratch).map_err(|_| Unfit)?;
                out.put_slice(scratch);
            }
        }
    }
    out.put_u8(b'}');
    Ok(())
}

/// Writes a size into the space reserved for it.
pub(crate) fn put_i32_at(out: &mut BytesMut, at: usize, size: usize) -> Result<(), Unfit> {
    let size = i32::try_from(size).map_err(|_| Unfit)?;
    let place = out.get_mut(at..at + size_of::<i32>()).ok_or(Unfit)?;
    place.copy_from_slice(&size.to_be_bytes());
    Ok(())
}
