//! One value, exactly as the client sent it and not yet converted to a column's type.
//!
//! The sink converts values by the table's schema at the time of the flight. Until then a value
//! keeps its digits (a number never becomes a float) and its spelling.

use std::mem::size_of;

/// The values of one write, in the order that [`crate::Shape`] defines.
pub type Row = Box<[Value]>;

/// A value in a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// SQL NULL or JSON `null`.
    Null,
    /// JSON `true` and `false`.
    Bool(bool),
    /// A whole number that fits 64 bits.
    Int(i64),
    /// Any other number, in decimal (`1.50`, `18446744073709551616`, `1e400`).
    Number(Box<str>),
    /// Text, and values of all types without a form in JSON (timestamps, UUIDs, enums, intervals
    /// ...).
    Text(Box<str>),
    /// Binary data. JSON contains it as base64 in a [`Value::Text`], which a sink converts by the
    /// column's type.
    Bytes(Box<[u8]>),
    /// A JSON array or object, as its text; for json columns, and for array columns if the database
    /// has them.
    Json(Box<str>),
}

impl Value {
    /// Returns a text.
    pub fn text(text: impl Into<Box<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a number from its decimal text: [`Value::Int`] if it is a plain whole number of 64
    /// bits.
    pub fn number(digits: &str) -> Self {
        // Only a text keeps the sign of `-0`.
        match digits.parse::<i64>() {
            Ok(n) if digits != "-0" && !digits.starts_with('+') => Self::Int(n),
            _ => Self::Number(digits.into()),
        }
    }

    /// Returns the value of a field of a format without types, such as CSV: a number if it is
    /// written as in JSON (`007` and `+1` are not), otherwise text. Both keep the spelling, so a
    /// text column stores both unchanged.
    pub fn from_field(field: &str) -> Self {
        if is_number(field.as_bytes()) {
            Self::number(field)
        } else {
            Self::text(field)
        }
    }

    /// True for [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the bytes that the value takes in memory, for the memory budget.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Null | Self::Bool(_) | Self::Int(_) => 0,
                Self::Number(s) | Self::Text(s) | Self::Json(s) => s.len(),
                Self::Bytes(b) => b.len(),
            }
    }
}

/// True if a text is a JSON number (RFC 8259, section 6).
pub fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    let (first, mut rest) = text.split_at(whole);
    if whole == 0 || (whole > 1 && first.starts_with(b"0")) {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let (places, behind) = fraction.split_at(digits(fraction));
        if places.is_empty() {
            return false;
        }
        rest = behind;
    }
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
        _ => false,
    }
}

impl From<bool> for Value {
    fn from(v: bool) -> Self {
        Self::Bool(v)
    }
}

impl From<i32> for Value {
    fn from(v: i32) -> Self {
        Self::Int(i64::from(v))
    }
}

impl From<i64> for Value {
    fn from(v: i64) -> Self {
        Self::Int(v)
    }
}

/// Converts to the shortest decimal text that reads back as the same float; `NaN` and `Infinity` as
/// PostgreSQL spells them.
impl From<f64> for Value {
    fn from(v: f64) -> Self {
        if v.is_nan() {
            Self::text("NaN")
        } else if v.is_infinite() {
            Self::text(if v > 0.0 { "Infinity" } else { "-Infinity" })
        } else {
            Self::Number(format!("{v:?}").into())
        }
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::Text(v.into())
    }
}

impl From<String> for Value {
    fn from(v: String) -> Self {
        Self::Text(v.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(v: Vec<u8>) -> Self {
        Self::Bytes(v.into())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Self {
        v.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_every_digit() {
        assert_eq!(Value::number("9223372036854775807"), Value::Int(i64::MAX));
        for text in [
            "9223372036854775808",
            "1.50",
            "1e400",
            "-0",
            "-0.0",
            "0.1000000000000000055511151231257827",
        ] {
            assert_eq!(Value::number(text), Value::Number(text.into()));
        }
    }

    #[test]
    fn fields_are_numbers_only_where_json_would_have_them() {
        for number in [
            "0",
            "-0",
            "7",
            "-12.50",
            "1e5",
            "1.5E-3",
            "123456789012345678901234567890",
        ] {
            assert_eq!(Value::from_field(number), Value::number(number), "{number}");
        }
        let texts = [
            "", "-", "007", "+1", "1.", ".5", "1e", "1e+", "0x1", "1 ", "NaN", "--1", "1.5.2",
        ];
        for text in texts {
            assert_eq!(Value::from_field(text), Value::text(text), "{text:?}");
        }
    }

    #[test]
    fn floats_become_their_shortest_text() {
        assert_eq!(Value::from(0.1), Value::Number("0.1".into()));
        assert_eq!(Value::from(f64::NAN), Value::text("NaN"));
        assert_eq!(Value::from(Some(3)), Value::Int(3));
        assert_eq!(Value::from(None::<&str>), Value::Null);
    }
}
