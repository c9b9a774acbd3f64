//! COPY's binary form: fields as the types' own receive functions read them.
//!
//! The encoder accepts only spellings that the type's input function certainly reads as the same
//! value. Any other field is left to the server: the whole portion then goes as text.

use bytes::{BufMut, BytesMut};
use windrow_core::{Field, Value};

use super::misspelled::Misspelled;
use super::numeric;
use crate::catalog::column::{Column, Kind, oid};
use crate::values::{scalar, text, time};

/// The header of every stream: the signature, no flags, no extension (PostgreSQL's documentation,
/// "COPY", "Binary Format").
pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The end of every stream, in place of a row's number of fields.
pub(super) const TRAILER: i16 = -1;

/// The length of a NULL.
const NULL: i32 = -1;

/// The longest name, in bytes (`NAMEDATALEN` - 1). As text a longer one is cut, in binary it is
/// refused.
const MAX_NAME_BYTES: usize = 63;

/// The bytes of a UUID.
const UUID: usize = 16;

/// The types that are written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    /// `text`, `varchar`, `char(n)` and enums: the text itself.
    Text,
    Name,
    Json,
    Jsonb,
    Bytea,
    Uuid,
    Date,
    Time,
    Timestamp,
    Timestamptz,
}

impl Form {
    /// Returns the binary form of a column's values; `None` if only their text form is known. A
    /// domain is read by its base type's function.
    pub(super) fn of(column: &Column) -> Option<Self> {
        Some(match &column.kind {
            Kind::Bool => Self::Bool,
            Kind::Int2 => Self::Int2,
            Kind::Int4 => Self::Int4,
            Kind::Int8 => Self::Int8,
            Kind::Float4 => Self::Float4,
            Kind::Float8 => Self::Float8,
            Kind::Numeric => Self::Numeric,
            Kind::Text | Kind::Char | Kind::Enum(_) => Self::Text,
            Kind::Bytea => Self::Bytea,
            Kind::Uuid => Self::Uuid,
            Kind::Json => Self::Json,
            Kind::Jsonb => Self::Jsonb,
            Kind::Timestamptz => Self::Timestamptz,
            Kind::Timestamp => Self::Timestamp,
            Kind::Date => Self::Date,
            Kind::Other => match column.base_oid {
                oid::NAME => Self::Name,
                oid::OID => Self::Oid,
                oid::TIME => Self::Time,
                _ => return None,
            },
            Kind::Array(..) | Kind::Composite => return None,
        })
    }
}

/// Appends a field: its length and its value. If it fails, the caller cuts off what was appended.
#[inline]
pub(super) fn push(
    form: Form,
    field: &Field<'_>,
    out: &mut BytesMut,
    scratch: &mut Vec<u8>,
) -> Result<(), Misspelled> {
    let text = match *field {
        Field::Null => {
            out.put_i32(NULL);
            return Ok(());
        }
        // A number that is not as plain as it could be has another spelling in a column of text.
        Field::Number(text) if form == Form::Text && text.starts_with(['0', '-', '+']) => {
            return generic(&Kind::Text, field, out, scratch);
        }
        Field::Number(text) if form == Form::Name && text.starts_with(['0', '-', '+']) => {
            return Err(Misspelled::Spelling);
        }
        Field::Plain(text) | Field::Text(text) | Field::Number(text) | Field::Json(text) => text,
        Field::Bool(true) => "true",
        Field::Bool(false) => "false",
        Field::Bytes(bytes) if form == Form::Bytea => return sized(bytes, out),
        Field::Bytes(bytes) if form == Form::Uuid && bytes.len() == UUID => {
            return sized(bytes, out);
        }
        Field::Bytes(_) => return Err(Misspelled::Spelling),
    };
    match form {
        Form::Text => sized(text.as_bytes(), out),
        Form::Json => generic(&Kind::Json, field, out, scratch),
        Form::Jsonb => generic(&Kind::Jsonb, field, out, scratch),
        Form::Bytea => bytea(field, out),
        _ => plain(form, text, out).ok_or(Misspelled::Spelling),
    }
}

/// Types of which a value has one text.
#[inline]
fn plain(form: Form, text: &str, out: &mut BytesMut) -> Option<()> {
    match form {
        Form::Int4 => put4(out, i32::try_from(int(text)?).ok()?.to_be_bytes()),
        Form::Int8 => put8(out, int(text)?.to_be_bytes()),
        Form::Int2 => {
            out.put_i32(2);
            out.put_i16(i16::try_from(int(text)?).ok()?);
        }
        Form::Oid => put4(out, unsigned(text)?.to_be_bytes()),
        Form::Float8 => put8(out, double(text)?.to_be_bytes()),
        Form::Float4 => put4(out, scalar::plain_single(text.as_bytes())?.to_be_bytes()),
        Form::Numeric => numeric::push(text.as_bytes(), out)?,
        Form::Timestamptz => put8(out, time::moment(text)?.utc().to_be_bytes()),
        Form::Timestamp => put8(out, time::moment(text)?.local().to_be_bytes()),
        Form::Date => put4(out, time::date(text)?.to_be_bytes()),
        Form::Time => put8(out, time::time_of_day(text)?.to_be_bytes()),
        Form::Bool => {
            out.put_i32(1);
            out.put_u8(u8::from(truth(text)?));
        }
        Form::Uuid => {
            out.put_i32(16);
            out.put_slice(&scalar::uuid_of(text.as_bytes())?);
        }
        Form::Name if text.len() > MAX_NAME_BYTES => return None,
        Form::Name | Form::Text => sized(text.as_bytes(), out).ok()?,
        Form::Json | Form::Jsonb | Form::Bytea => return None,
    }
    Some(())
}

#[inline]
fn put4(out: &mut BytesMut, bytes: [u8; 4]) {
    let [a, b, c, d] = bytes;
    out.put_slice(&[0, 0, 0, 4, a, b, c, d]);
}

#[inline]
fn put8(out: &mut BytesMut, bytes: [u8; 8]) {
    let [a, b, c, d, e, f, g, h] = bytes;
    out.put_slice(&[0, 0, 0, 8, a, b, c, d, e, f, g, h]);
}

#[inline]
fn sized(bytes: &[u8], out: &mut BytesMut) -> Result<(), Misspelled> {
    out.put_i32(i32::try_from(bytes.len()).map_err(|_| Misspelled::TooLong)?);
    out.put_slice(bytes);
    Ok(())
}

/// Appends what a write of the field alone would send as text.
fn generic(
    kind: &Kind,
    field: &Field<'_>,
    out: &mut BytesMut,
    scratch: &mut Vec<u8>,
) -> Result<(), Misspelled> {
    scratch.clear();
    if *kind == Kind::Jsonb {
        // The version of its binary form.
        scratch.push(1);
    }
    text::push(kind, &field.value(), scratch).map_err(Misspelled::from)?;
    sized(scratch, out)
}

/// Appends the bytes of base64, or of hexadecimal digits without blanks after `\x`.
fn bytea(field: &Field<'_>, out: &mut BytesMut) -> Result<(), Misspelled> {
    let Value::Text(text) = field.value() else {
        return Err(Misspelled::Spelling);
    };
    match text.strip_prefix("\\x") {
        None => sized(&text::decode_base64(&text).map_err(Misspelled::from)?, out),
        Some(digits) => {
            let digit = |b: &u8| {
                char::from(*b)
                    .to_digit(16)
                    .and_then(|d| u8::try_from(d).ok())
            };
            let pair = |two: &[u8]| match two {
                [high, low] => Some((digit(high)? << 4) | digit(low)?),
                _ => None,
            };
            let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(pair).collect();
            sized(&bytes.ok_or(Misspelled::Spelling)?, out)
        }
    }
}

/// Reads a sign and decimal digits.
#[inline]
fn int(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, bytes),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() > 18 {
        return text.parse().ok();
    }
    let number = digits
        .iter()
        .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    Some(if negative { -number } else { number })
}

fn unsigned(text: &str) -> Option<u32> {
    u32::try_from(int(text).filter(|n| *n >= 0 && !text.starts_with('-'))?).ok()
}

fn double(text: &str) -> Option<f64> {
    // Whole numbers below 2^53 are doubles as they stand; most columns of doubles hold little else.
    match int(text) {
        #[expect(clippy::cast_precision_loss, reason = "none is lost below 2^53")]
        Some(n) if n.unsigned_abs() < 1 << 53 && n != 0 => Some(n as f64),
        _ => scalar::plain_double(text.as_bytes()),
    }
}

/// Reads a truth value as `boolin` does: the beginnings of these words, in any case.
fn truth(text: &str) -> Option<bool> {
    let is = |word: &str, least: usize| {
        text.len() >= least
            && word
                .get(..text.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(text))
    };
    if is("true", 1) || is("yes", 1) || is("on", 2) || text == "1" {
        Some(true)
    } else if is("false", 1) || is("no", 1) || is("off", 2) || text == "0" {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truths_are_what_the_server_takes() {
        for (text, expected) in [
            ("t", Some(true)),
            ("TRU", Some(true)),
            ("y", Some(true)),
            ("on", Some(true)),
            ("1", Some(true)),
            ("f", Some(false)),
            ("No", Some(false)),
            ("of", Some(false)),
            ("0", Some(false)),
            ("o", None),
            ("", None),
            ("truee", None),
            ("10", None),
            ("ä", None),
        ] {
            assert_eq!(truth(text), expected, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_signs_and_digits() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-007", Some(-7)),
            ("+5", Some(5)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("", None),
            ("-", None),
            ("1 ", None),
            ("1_000", None),
            ("0x1", None),
        ] {
            assert_eq!(int(text), expected, "{text}");
        }
        assert_eq!(double("-0").map(f64::is_sign_negative), Some(true));
        assert_eq!(
            (unsigned("-0"), unsigned("4294967295")),
            (None, Some(u32::MAX))
        );
    }
}
