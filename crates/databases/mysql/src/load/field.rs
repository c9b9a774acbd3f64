//! Writes values as LOAD DATA reads them: text with tabs between fields, in the session's own
//! character set.
//!
//! Each value is stored as if a lane had written it. Most texts are written as they are, because
//! the lane sends them so too. All other values are encoded as the lane would encode them, and the
//! result is written as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mysql_async::Value as Cell;
use windrow_core::{Fault, FaultClass, Field, TableName};
use windrow_database::truth::truth;

use crate::values::column::{Column, Kind};
use crate::values::{encode, literal};

/// Appends a value.
///
/// # Errors
/// The value cannot be read, or LOAD DATA would store another value than the lane writes.
pub(super) fn push(
    out: &mut Vec<u8>,
    table: &TableName,
    column: &Column,
    field: Field<'_>,
) -> Result<(), Fault> {
    let kind = column.kind;
    match field {
        // LOAD DATA would store another value in place of NULL.
        Field::Null if column.not_null && !column.auto => return Err(null(table, column)),
        Field::Null => out.extend_from_slice(b"\\N"),
        Field::Plain(text) | Field::Text(text) if kind == Kind::Bool && truth(text).is_some() => {
            return convert(out, table, column, field);
        }
        // MySQL would ignore what follows a number in a DECIMAL.
        Field::Plain(text) | Field::Text(text) | Field::Number(text)
            if matches!(kind, Kind::Decimal(..)) && !is_number(text.trim_ascii()) =>
        {
            return Err(no_number(table, column));
        }
        Field::Plain(text) | Field::Text(text) if is_words(kind) => escape(out, text.as_bytes()),
        Field::Plain(text) | Field::Text(text) | Field::Number(text)
            if kind.is_numeric() && kind != Kind::Year =>
        {
            escape(out, text.as_bytes());
        }
        Field::Plain(text) | Field::Text(text) if is_time(kind) && goes_as_it_is(text) => {
            escape(out, text.as_bytes());
        }
        other => return convert(out, table, column, other),
    }
    Ok(())
}

/// Appends a value as an SQL literal.
///
/// # Errors
/// The value cannot be read.
pub(super) fn push_literal(
    out: &mut String,
    table: &TableName,
    column: &Column,
    field: Field<'_>,
) -> Result<(), Fault> {
    // In its lenient modes, the server stores another value for a NULL in a statement of several
    // rows.
    if matches!(field, Field::Null) && column.not_null && !column.auto {
        return Err(null(table, column));
    }
    let cell = encode::stored(table, column, &field.value())?;
    // Bits are encoded as bytes too.
    let is_binary = column.kind.is_binary() || column.kind == Kind::Bit;
    match &cell {
        // In a literal they would be text of some character set.
        Cell::Bytes(bytes) if !is_binary && std::str::from_utf8(bytes).is_err() => {
            return Err(unspeakable(table, column));
        }
        cell => literal::push(out, cell, is_binary),
    }
    Ok(())
}

/// Converts a value to the cell that the lane would send.
fn convert(
    out: &mut Vec<u8>,
    table: &TableName,
    column: &Column,
    field: Field<'_>,
) -> Result<(), Fault> {
    let kind = column.kind;
    match encode::stored(table, column, &field.value())? {
        Cell::NULL => out.extend_from_slice(b"\\N"),
        Cell::Bytes(bytes) if kind.is_binary() => push_base64(out, &bytes),
        Cell::Int(n) if means_the_same(kind, n) => out.extend_from_slice(n.to_string().as_bytes()),
        Cell::UInt(n) if !is_time(kind) => out.extend_from_slice(n.to_string().as_bytes()),
        // As text they would be the bits of the text's bytes.
        Cell::Bytes(bytes) if kind != Kind::Bit && std::str::from_utf8(&bytes).is_ok() => {
            escape(out, &bytes);
        }
        _ => return Err(unspeakable(table, column)),
    }
    Ok(())
}

/// Returns true if a column stores an integer and its digits as text alike.
fn means_the_same(kind: Kind, n: i64) -> bool {
    match kind {
        Kind::Bit => n >= 0,
        Kind::Date => (10_000_000..=99_999_999).contains(&n),
        Kind::DateTime | Kind::Timestamp | Kind::Time => false,
        _ => true,
    }
}

/// Returns true for columns that keep a text as it is spelled.
fn is_words(kind: Kind) -> bool {
    matches!(kind, Kind::Char | Kind::Text | Kind::Enum | Kind::Other)
}

/// Returns true for a text that every server reads as a number from the first byte to the last.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (mantissa, exponent) = (unsigned(mantissa), unsigned(exponent));
    let (whole, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !(whole.is_empty() && behind.is_empty() || exponent.is_empty());
    has_digits && digits(whole) && digits(behind) && digits(exponent)
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn is_time(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Date | Kind::DateTime | Kind::Timestamp | Kind::Time | Kind::Year
    )
}

/// Returns true for a date that is not a number and has no time zone.
fn goes_as_it_is(text: &str) -> bool {
    let bytes = text.as_bytes();
    let dashes = bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
    let behind = bytes.get(10..).unwrap_or_default();
    let zone = |b: &u8| matches!(b, b'Z' | b'z' | b'+' | b'-');
    dashes && !behind.iter().any(zone)
}

fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let before = out.len();
    let length = base64::encoded_len(bytes.len(), true).unwrap_or(0);
    out.resize(before + length, 0);
    if let Some(room) = out.get_mut(before..) {
        // The buffer has exactly the length that the text needs.
        STANDARD.encode_slice(bytes, room).ok();
    }
}

/// Appends text, and escapes the characters that separate fields and rows.
fn escape(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = memchr::memchr3(b'\\', b'\t', b'\n', rest) {
        let (plain, behind) = rest.split_at(at);
        out.extend_from_slice(plain);
        let (special, behind) = behind.split_at(behind.len().min(1));
        out.extend_from_slice(match special {
            b"\t" => b"\\t",
            b"\n" => b"\\n",
            _ => b"\\\\",
        });
        rest = behind;
    }
    out.extend_from_slice(rest);
}

fn null(table: &TableName, column: &Column) -> Fault {
    let message = format!("column {} of table {table} cannot be NULL", column.name);
    fault((FaultClass::NotNull, "23502"), message, table, column)
}

fn no_number(table: &TableName, column: &Column) -> Fault {
    let (name, what) = (&column.name, "is no number");
    let message = format!("a value for column {name} of table {table} {what}");
    fault((FaultClass::Value, "22018"), message, table, column)
}

fn unspeakable(table: &TableName, column: &Column) -> Fault {
    let (name, what) = (&column.name, "cannot be written for LOAD DATA");
    let message = format!("a value for column {name} of table {table} {what}");
    fault((FaultClass::Unsupported, "0A000"), message, table, column)
}

fn fault(
    (class, code): (FaultClass, &'static str),
    message: String,
    table: &TableName,
    column: &Column,
) -> Fault {
    Fault::new(class, code, message)
        .with_table(Some(&*table.table))
        .with_column(Some(&*column.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::column::sample;

    fn written(kind: Kind, field: Field<'_>) -> Option<String> {
        let mut out = Vec::new();
        push(&mut out, &TableName::bare("t"), &sample(kind), field).ok()?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn text_is_escaped() {
        let text = Field::Plain("a\\N\tb\nc\r\0'\"é");
        let expected = "a\\\\N\\tb\\nc\r\0'\"é";
        assert_eq!(written(Kind::Text, text).as_deref(), Some(expected));
        assert_eq!(written(Kind::Text, Field::Null).as_deref(), Some("\\N"));
        assert_eq!(written(Kind::Text, Field::Text("")).as_deref(), Some(""));
    }

    #[test]
    fn values_are_what_the_lane_makes_of_them() {
        for (kind, field, expected) in [
            (Kind::Bool, Field::Bool(true), Some("1")),
            (Kind::Text, Field::Bool(true), Some("true")),
            (Kind::Blob, Field::Text("AP8="), Some("AP8=")),
            (Kind::Blob, Field::Bytes(b"\0\xff"), Some("AP8=")),
            (Kind::Blob, Field::Plain("12"), Some("MTI=")),
            (Kind::Blob, Field::Text("?"), None),
            (Kind::Bit, Field::Plain("5"), Some("5")),
            (Kind::Bit, Field::Plain("-5"), None),
            (Kind::Bit, Field::Plain("1.5"), None),
            (Kind::Json, Field::Json("{\"a\":1}"), Some("{\"a\":1}")),
            (Kind::Json, Field::Text("a\"b"), Some("\"a\\\\\"b\"")),
            (Kind::Year, Field::Plain("2013"), Some("2013")),
            (Kind::Year, Field::Plain("0"), Some("0000")),
            (Kind::Text, Field::Bytes(b"\xff"), None),
            (Kind::Int, Field::Plain("007"), Some("007")),
            (Kind::Bool, Field::Plain("true"), Some("1")),
            (Kind::Bool, Field::Text("F"), Some("0")),
            (Kind::Bool, Field::Plain("yes"), Some("yes")),
            (Kind::Decimal(5, 2), Field::Plain("12abc"), None),
            (
                Kind::Decimal(5, 2),
                Field::Plain("-1.2e+3"),
                Some("-1.2e+3"),
            ),
            (Kind::Decimal(5, 2), Field::Plain(".5"), Some(".5")),
            (Kind::Decimal(5, 2), Field::Plain(" 1 "), Some(" 1 ")),
            (Kind::Decimal(5, 2), Field::Plain("1e"), None),
            (Kind::Decimal(5, 2), Field::Plain("."), None),
        ] {
            assert_eq!(
                written(kind, field).as_deref(),
                expected,
                "{kind:?} {field:?}"
            );
        }
        let zoned = Field::Plain("2020-01-01T01:00:00+01:00");
        let utc = Some("2020-01-01 00:00:00");
        assert_eq!(written(Kind::Timestamp, zoned).as_deref(), utc);
        let plain = Field::Plain("2020-01-01T01:00:00");
        let same = Some("2020-01-01T01:00:00");
        assert_eq!(written(Kind::DateTime, plain).as_deref(), same);
    }

    #[test]
    fn null_is_not_left_to_the_server_where_it_must_not_be() {
        let mut column = sample(Kind::Int);
        column.not_null = true;
        let mut out = Vec::new();
        let table = TableName::bare("t");
        let fault = push(&mut out, &table, &column, Field::Null).unwrap_err();
        assert_eq!(fault.class, FaultClass::NotNull);
        column.auto = true;
        push(&mut out, &table, &column, Field::Null).unwrap();
    }
}
