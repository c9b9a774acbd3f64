//! Values of Parquet, and how they are written as text.

use num_bigint::BigInt;
use parquet::data_type::Int96;

use super::schema::{IntType, Scalar};
use super::text::{self, Unit};

/// The Julian day of 1970-01-01. [`Int96`] counts Julian days.
const JULIAN_DAYS_BEFORE_1970: i64 = 2_440_588;

const NANOS_A_DAY: i64 = 86_400_000_000_000;

/// The kind of a value whose text was written, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Null,
    Bool(bool),
    Number,
    Text,
    Json,
    /// Bytes, which have no text.
    Bytes,
}

/// A value as a file stores it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored<'a> {
    Null,
    Bool(bool),
    /// An integer of at most 32 bits, or without a sign: extended as one with a sign.
    Int(i64),
    Int96(&'a Int96),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

impl<'a> Stored<'a> {
    /// Returns the bytes of a value of bytes.
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Writes the text of a value of this type.
    ///
    /// # Errors
    /// The value does not have the form that its type requires, such as a text that is not UTF-8.
    pub(super) fn write(self, scalar: Scalar, out: &mut String) -> Result<ValueKind, String> {
        Ok(match (self, scalar) {
            (Self::Null, _) | (_, Scalar::Null) => ValueKind::Null,
            (Self::Bool(truth), _) => ValueKind::Bool(truth),
            (Self::Float(value), _) => float(value, f32::is_finite, out),
            (Self::Double(value), _) => float(value, f64::is_finite, out),
            (Self::Int96(value), _) => int96(value, out),
            (Self::Int(value), Scalar::Date) => {
                text::date(value, out);
                ValueKind::Text
            }
            (Self::Int(value), Scalar::Time(unit)) => {
                unit.time(value, out);
                ValueKind::Text
            }
            (Self::Int(value), Scalar::Timestamp(unit, is_utc)) => {
                unit.timestamp(value, out);
                out.push_str(if is_utc { "+00:00" } else { "" });
                ValueKind::Text
            }
            (Self::Int(value), Scalar::Decimal(_, scale)) => {
                text::decimal(itoa::Buffer::new().format(value), scale, out);
                ValueKind::Number
            }
            (Self::Int(value), Scalar::Int(int)) => {
                whole(value, int, out);
                ValueKind::Number
            }
            (Self::Int(value), _) => {
                out.push_str(itoa::Buffer::new().format(value));
                ValueKind::Number
            }
            (Self::Bytes(bytes), scalar) => of_bytes(bytes, scalar, out)?,
        })
    }
}

fn whole(value: i64, int: IntType, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    out.push_str(match (int.is_signed, int.bits) {
        (true, _) => buffer.format(value),
        (false, 64) => buffer.format(value.cast_unsigned()),
        // Only these bits were stored, or the sign was extended over the others.
        (false, bits) => buffer.format(value.cast_unsigned() & ((1 << bits) - 1)),
    });
}

fn of_bytes(bytes: &[u8], scalar: Scalar, out: &mut String) -> Result<ValueKind, String> {
    Ok(match scalar {
        Scalar::Text | Scalar::Json => {
            let text = std::str::from_utf8(bytes)
                .map_err(|error| format!("a text is not UTF-8: {error}"))?;
            out.push_str(text);
            match scalar {
                Scalar::Json => ValueKind::Json,
                _ => ValueKind::Text,
            }
        }
        Scalar::Uuid => {
            text::uuid(bytes, out);
            ValueKind::Text
        }
        Scalar::Decimal(_, scale) => {
            text::decimal(&digits(bytes), scale, out);
            ValueKind::Number
        }
        Scalar::Float16 => {
            let bits = bytes.first_chunk().map(|bytes| u16::from_le_bytes(*bytes));
            let value = f32::from(half::f16::from_bits(bits.unwrap_or_default()));
            float(value, f32::is_finite, out)
        }
        _ => ValueKind::Bytes,
    })
}

/// Returns the digits of a number in two's complement, most significant byte first.
fn digits(bytes: &[u8]) -> String {
    if bytes.len() > size_of::<i128>() {
        return BigInt::from_signed_bytes_be(bytes).to_string();
    }
    let is_negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let start = if is_negative { -1 } else { 0 };
    let value = bytes
        .iter()
        .fold(start, |value: i128, byte| (value << 8) | i128::from(*byte));
    itoa::Buffer::new().format(value).to_owned()
}

fn int96(value: &Int96, out: &mut String) -> ValueKind {
    let [low, high, day] = value.data() else {
        return ValueKind::Null;
    };
    let nanos = (u64::from(*high) << 32 | u64::from(*low)).cast_signed();
    // Some programs write more than a day, or a negative time.
    let day = i64::from(day.cast_signed()) + nanos.div_euclid(NANOS_A_DAY);
    text::date(day - JULIAN_DAYS_BEFORE_1970, out);
    out.push('T');
    Unit::NANO.time(nanos.rem_euclid(NANOS_A_DAY), out);
    ValueKind::Text
}

/// Writes the shortest text that is read as the same number. A value that is no number in JSON is
/// written as text, spelled as in PostgreSQL.
fn float<F: Copy + std::fmt::Debug + Into<f64>>(
    value: F,
    is_finite: fn(F) -> bool,
    out: &mut String,
) -> ValueKind {
    use std::fmt::Write;
    if is_finite(value) {
        // Writing to a string cannot fail.
        write!(out, "{value:?}").ok();
        return ValueKind::Number;
    }
    let value: f64 = value.into();
    out.push_str(if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    });
    ValueKind::Text
}
