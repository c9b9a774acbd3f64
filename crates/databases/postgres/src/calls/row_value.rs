//! The value of a parameter or constant as the value of a row, if the column stores both alike
//! under any settings of the session.

use std::fmt::Write as _;

use windrow_core::Value;
use windrow_core::value::is_number;

use crate::catalog::column::{Column, Kind, oid};
use crate::values::{scalar, time};

/// The way to read the bytes of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueReader {
    /// A whole number of so many bytes.
    Whole(usize),
    Float4,
    Float8,
    Numeric,
    Bool,
    /// Texts, and enums: both formats are the text.
    Text,
    Uuid,
    Bytea,
    Json,
    Jsonb,
    Date,
    Timestamp,
    /// A point in time. True if the session's time zone is UTC.
    Timestamptz(bool),
}

impl ValueReader {
    /// Returns the reader of a parameter of this type for a column; `None` if only the server knows
    /// what the column would store.
    pub(super) fn of(column: &Column, parameter: u32, utc: bool) -> Option<Self> {
        use Kind::{Float4, Float8, Int2, Int4, Int8, Numeric};
        let same = parameter == column.type_oid;
        let width = match parameter {
            oid::INT2 => Some(2),
            oid::INT4 => Some(4),
            oid::INT8 => Some(8),
            _ => None,
        };
        match (&column.kind, width) {
            (Int2 | Int4 | Int8 | Float4 | Float8 | Numeric, Some(width)) => {
                Some(Self::Whole(width))
            }
            (Float4 | Float8, _) if parameter == oid::NUMERIC => Some(Self::Numeric),
            (Kind::Text | Kind::Char, _) if matches!(parameter, oid::TEXT | oid::VARCHAR) => {
                Some(Self::Text)
            }
            (kind, _) if same => Self::of_kind(kind, utc),
            _ => None,
        }
    }

    fn of_kind(kind: &Kind, utc: bool) -> Option<Self> {
        Some(match kind {
            Kind::Float4 => Self::Float4,
            Kind::Float8 => Self::Float8,
            Kind::Numeric => Self::Numeric,
            Kind::Bool => Self::Bool,
            Kind::Text | Kind::Char | Kind::Enum(_) => Self::Text,
            Kind::Uuid => Self::Uuid,
            Kind::Bytea => Self::Bytea,
            Kind::Json => Self::Json,
            Kind::Jsonb => Self::Jsonb,
            Kind::Date => Self::Date,
            Kind::Timestamp => Self::Timestamp,
            Kind::Timestamptz => Self::Timestamptz(utc),
            _ => return None,
        })
    }

    /// Reads a value; `None` if it is left to the server, which may refuse it.
    pub(super) fn read(self, bytes: &[u8], binary: bool) -> Option<Value> {
        if binary && !matches!(self, Self::Text | Self::Json) {
            return self.read_binary(bytes);
        }
        let text = std::str::from_utf8(bytes)
            .ok()
            .filter(|text| !text.contains('\0'))?;
        match self {
            Self::Whole(width) => {
                let number = scalar::int(&Value::text(text))?;
                let bits = u32::try_from(width * 8 - 1).ok()?;
                let fits = width == 8 || (-(1_i64 << bits)..1_i64 << bits).contains(&number);
                fits.then_some(Value::Int(number))
            }
            Self::Numeric => number(text).filter(|_| scalar::is_numeric(text)),
            Self::Float4 => scalar::single(&Value::text(text)).and(number(text)),
            Self::Float8 => scalar::double(&Value::text(text)).and(number(text)),
            Self::Bool => boolean(text),
            Self::Text => Some(Value::text(text)),
            Self::Uuid => scalar::uuid_of(bytes).map(|_| Value::text(text)),
            Self::Bytea => bytea(text),
            Self::Json | Self::Jsonb => json(text),
            Self::Date => time::date(text).map(|_| Value::text(text)),
            Self::Timestamp => time::moment(text).map(|_| Value::text(text)),
            Self::Timestamptz(utc) => {
                let moment = time::moment(text)?;
                (utc || moment.has_zone()).then(|| Value::text(text))
            }
        }
    }

    fn read_binary(self, bytes: &[u8]) -> Option<Value> {
        match self {
            Self::Whole(width) if bytes.len() == width => whole(bytes).map(Value::Int),
            Self::Float4 => {
                let float = f32::from_be_bytes(bytes.try_into().ok()?);
                number(&format!("{float:?}"))
            }
            Self::Float8 => {
                let float = f64::from_be_bytes(bytes.try_into().ok()?);
                number(&format!("{float:?}"))
            }
            Self::Bool => match bytes {
                [0] => Some(Value::Bool(false)),
                [1] => Some(Value::Bool(true)),
                _ => None,
            },
            Self::Uuid => (bytes.len() == 16).then(|| Value::text(uuid(bytes))),
            Self::Bytea => Some(Value::Bytes(bytes.into())),
            Self::Jsonb => match bytes.split_first()? {
                (1, text) => json(std::str::from_utf8(text).ok()?),
                _ => None,
            },
            Self::Date => {
                let days = i32::from_be_bytes(bytes.try_into().ok()?);
                time::text_of_date(i64::from(days)).map(Value::text)
            }
            Self::Timestamp | Self::Timestamptz(_) => {
                let micros = i64::from_be_bytes(bytes.try_into().ok()?);
                let text = time::text_of(micros)?;
                Some(Value::text(match self {
                    Self::Timestamp => text,
                    _ => text + "Z",
                }))
            }
            _ => None,
        }
    }
}

/// Reads a constant of the statement's text: NULL, `true`, `false`, a number, or a text in quotes;
/// `None` if it is left to the server.
pub(super) fn constant(column: &Column, sql: &str, utc: bool) -> Option<Value> {
    let quoted = sql
        .strip_prefix('\'')
        .and_then(|sql| sql.strip_suffix('\''));
    if let Some(inside) = quoted {
        let is_one = !inside.contains('\\') && !inside.replace("''", "").contains('\'');
        let reader = ValueReader::of(column, column.type_oid, utc).filter(|_| is_one)?;
        return reader.read(inside.replace("''", "'").as_bytes(), false);
    }
    if sql.eq_ignore_ascii_case("null") {
        return Some(Value::Null);
    }
    let is_bool = column.kind == Kind::Bool;
    if is_bool && (sql.eq_ignore_ascii_case("true") || sql.eq_ignore_ascii_case("false")) {
        return Some(Value::Bool(sql.eq_ignore_ascii_case("true")));
    }
    let parameter = match Value::number(sql) {
        Value::Int(_) => oid::INT8,
        _ => oid::NUMERIC,
    };
    let reader = ValueReader::of(column, parameter, utc).filter(|_| is_number(sql.as_bytes()))?;
    reader.read(sql.as_bytes(), false)
}

/// Reads a number in the spelling of JSON: no NaN, no infinity.
fn number(text: &str) -> Option<Value> {
    is_number(text.as_bytes()).then(|| Value::number(text))
}

fn whole(bytes: &[u8]) -> Option<i64> {
    match *bytes {
        [a, b] => Some(i64::from(i16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(i64::from(i32::from_be_bytes([a, b, c, d]))),
        _ => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
    }
}

/// Reads a truth value in the words that drivers use.
fn boolean(text: &str) -> Option<Value> {
    match text {
        "t" | "true" | "TRUE" | "1" | "on" | "yes" | "y" => Some(Value::Bool(true)),
        "f" | "false" | "FALSE" | "0" | "off" | "no" | "n" => Some(Value::Bool(false)),
        _ => None,
    }
}

/// Reads hexadecimal digits after `\x`, or a text without backslashes as its own bytes.
fn bytea(text: &str) -> Option<Value> {
    let Some(digits) = text.strip_prefix("\\x") else {
        return (!text.contains('\\')).then(|| Value::Bytes(text.as_bytes().into()));
    };
    let digit = |b: u8| {
        char::from(b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let byte = |pair: &[u8]| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    let bytes: Option<Box<[u8]>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.map(Value::Bytes)
}

/// Returns JSON text unchanged, if it is valid.
fn json(text: &str) -> Option<Value> {
    let is_json = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    is_json.then(|| Value::Json(text.into()))
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        let hyphen = if matches!(place, 4 | 6 | 8 | 10) {
            "-"
        } else {
            ""
        };
        // A text can always be written.
        write!(text, "{hyphen}{byte:02x}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::column::sample;

    fn column(kind: Kind, type_oid: u32) -> Column {
        Column {
            type_oid,
            base_oid: type_oid,
            ..sample(kind)
        }
    }

    fn text(kind: Kind, type_oid: u32, parameter: u32, text: &str) -> Option<Value> {
        let reader = ValueReader::of(&column(kind, type_oid), parameter, false)?;
        reader.read(text.as_bytes(), false)
    }

    fn binary(kind: Kind, type_oid: u32, bytes: &[u8]) -> Option<Value> {
        let reader = ValueReader::of(&column(kind, type_oid), type_oid, false)?;
        reader.read(bytes, true)
    }

    #[test]
    fn values_of_the_columns_own_type_are_read() {
        let moment = "2024-02-29 12:00:00.5+01";
        for (read, value) in [
            (text(Kind::Int4, oid::INT4, oid::INT8, "-7"), Value::Int(-7)),
            (
                text(Kind::Numeric, oid::NUMERIC, oid::NUMERIC, "1.50"),
                Value::number("1.50"),
            ),
            (text(Kind::Bool, oid::BOOL, oid::BOOL, "f"), false.into()),
            (
                text(Kind::Bytea, oid::BYTEA, oid::BYTEA, "\\x00ff"),
                vec![0, 255].into(),
            ),
            (
                text(Kind::Json, oid::JSON, oid::JSON, "[1 ]"),
                Value::Json("[1 ]".into()),
            ),
            (
                text(
                    Kind::Timestamptz,
                    oid::TIMESTAMPTZ,
                    oid::TIMESTAMPTZ,
                    moment,
                ),
                Value::text(moment),
            ),
            (binary(Kind::Int2, oid::INT2, &[255, 255]), Value::Int(-1)),
            (
                binary(Kind::Float8, oid::FLOAT8, &0.1_f64.to_be_bytes()),
                Value::number("0.1"),
            ),
            (
                binary(Kind::Date, oid::DATE, &59_i32.to_be_bytes()),
                Value::text("2000-02-29"),
            ),
            (
                binary(Kind::Timestamp, oid::TIMESTAMP, &(-1_i64).to_be_bytes()),
                Value::text("1999-12-31T23:59:59.999999"),
            ),
        ] {
            assert_eq!(read, Some(value));
        }
        let uuid = binary(Kind::Uuid, oid::UUID, &[0xab; 16]);
        assert_eq!(
            uuid,
            Some(Value::text("abababab-abab-abab-abab-abababababab"))
        );
    }

    #[test]
    fn what_the_session_or_the_server_decides_is_left_to_them() {
        let tz = oid::TIMESTAMPTZ;
        for (left, why) in [
            (
                text(Kind::Timestamptz, tz, tz, "2024-01-01 00:00"),
                "no zone",
            ),
            (
                text(Kind::Date, oid::DATE, oid::DATE, "1/2/2024"),
                "DateStyle",
            ),
            (text(Kind::Date, oid::DATE, oid::DATE, "today"), "a word"),
            (
                text(Kind::Int8, oid::INT8, oid::INT2, "70000"),
                "past the parameter's range",
            ),
            (text(Kind::Int4, oid::INT4, oid::NUMERIC, "1.5"), "rounded"),
            (
                text(Kind::Float8, oid::FLOAT8, oid::FLOAT4, "0.1"),
                "widened",
            ),
            (text(Kind::Text, oid::TEXT, oid::BPCHAR, "a "), "blanks"),
            (
                text(Kind::Float8, oid::FLOAT8, oid::FLOAT8, "NaN"),
                "no number",
            ),
            (text(Kind::Jsonb, oid::JSONB, oid::JSONB, "{"), "no JSON"),
            (
                text(Kind::Bytea, oid::BYTEA, oid::BYTEA, "a\\001"),
                "escapes",
            ),
            (
                text(Kind::Other, oid::INTERVAL, oid::INTERVAL, "1 day"),
                "IntervalStyle",
            ),
            (
                binary(Kind::Numeric, oid::NUMERIC, &[0; 8]),
                "binary numeric",
            ),
            (
                binary(Kind::Timestamp, oid::TIMESTAMP, &i64::MAX.to_be_bytes()),
                "infinity",
            ),
        ] {
            assert_eq!(left, None, "{why}");
        }
    }

    #[test]
    fn constants_are_what_the_text_says() {
        let int = column(Kind::Int4, oid::INT4);
        let plain = column(Kind::Text, oid::TEXT);
        assert_eq!(constant(&int, "-5", true), Some(Value::Int(-5)));
        assert_eq!(constant(&int, "'5'", true), Some(Value::Int(5)));
        assert_eq!(constant(&int, "1.5", true), None);
        assert_eq!(constant(&plain, "'it''s'", true), Some(Value::text("it's")));
        assert_eq!(constant(&plain, "null", true), Some(Value::Null));
        for other in ["5", "now()", "'a' || 'b'", "E'a'", "$1"] {
            assert_eq!(constant(&plain, other, true), None, "{other}");
        }
    }
}
