//! Conversions of values between columns of different databases.

use crate::value::Value;

/// The values that a column accepts, if a value of another database would otherwise be changed
/// without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Bits, as a text of the digits 0 and 1.
    Digits,
    /// A number of bits, as a whole number.
    Bits(usize),
    /// Binary data. A text would be read as base64.
    Bytes,
    /// Binary data and texts. A text would be read as base64, so texts come as [`Value::Json`].
    BytesOrTexts,
    /// Text. Binary data would be written as digits.
    Text,
    /// JSON. A text would become a JSON string.
    Json,
    /// Arrays. A text would be read in the database's own array syntax.
    Array,
    /// Whole numbers. Others would be rounded.
    Whole,
    /// Numbers. Binary data would be read as their digits.
    Number,
    /// Doubles, also infinite ones, which come as [`Value::Number`], and texts.
    Double,
}

impl Takes {
    /// Converts a value so that the column stores it unchanged. `from`: the conversion of the
    /// column that it comes from.
    ///
    /// # Errors
    /// A description of the value that the column cannot hold.
    pub fn taken(self, from: Option<Self>, value: Value) -> Result<Value, &'static str> {
        Ok(match (self, value) {
            (Self::Bytes, Value::Text(text)) => Value::Bytes(text.into_boxed_bytes()),
            (Self::BytesOrTexts | Self::Json, Value::Text(text)) => Value::Json(text),
            (Self::Text, Value::Bytes(bytes)) => Value::Text(text(bytes)?),
            (Self::Json | Self::Array, Value::Bytes(bytes)) => Value::Json(text(bytes)?),
            (Self::Array, Value::Text(text)) if is_array(&text) => Value::Json(text),
            (Self::Bits(_), Value::Text(digits)) if from == Some(Self::Digits) => {
                let number = u64::from_str_radix(&digits, 2);
                let number = number.map_err(|_| "more bits than 64")?;
                Value::number(&number.to_string())
            }
            (Self::Digits, value) => digits(from, value),
            (Self::Whole, Value::Number(digits)) if has_fraction(&digits) => {
                return Err("no whole number");
            }
            (Self::Whole | Self::Number | Self::Bits(_), Value::Bytes(_)) => {
                return Err("binary data");
            }
            (Self::Double, Value::Text(text))
                if from != Some(Self::Double) && is_infinite(&text) =>
            {
                Value::Number(text)
            }
            (_, value) => value,
        })
    }
}

fn text(bytes: Box<[u8]>) -> Result<Box<str>, &'static str> {
    let text = String::from_utf8(bytes.into()).map_err(|_| "binary data that is no text")?;
    Ok(text.into())
}

/// True if a text is a JSON array. PostgreSQL's own array syntax may look similar, with bounds:
/// `[0:1]=`.
fn is_array(text: &str) -> bool {
    let bound = |c: char| c.is_ascii_digit() || c == '-';
    let inside = text.strip_prefix('[');
    inside.is_some_and(|inside| !inside.trim_start_matches(bound).starts_with(':'))
}

fn has_fraction(digits: &str) -> bool {
    let fraction = digits.split_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().any(|digit| digit != b'0')
}

fn is_infinite(text: &str) -> bool {
    matches!(text, "Infinity" | "-Infinity")
}

fn digits(from: Option<Takes>, value: Value) -> Value {
    let number = match &value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Number(digits) => digits.parse().ok(),
        _ => None,
    };
    match (from, number) {
        (Some(Takes::Bits(width)), Some(number)) => Value::text(format!("{number:0width$b}")),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_spelled_as_the_column_has_them() {
        let from_digits = |value: &Value| Takes::Bits(5).taken(Some(Takes::Digits), value.clone());
        let from_bits = |value: &Value| Takes::Digits.taken(Some(Takes::Bits(5)), value.clone());
        let five = Value::text("00101");
        assert_eq!(from_digits(&five), Ok(Value::Int(5)));
        assert_eq!(from_bits(&Value::Int(5)), Ok(five.clone()));
        assert_eq!(from_bits(&Value::Null), Ok(Value::Null));
        let (all, ones) = (
            Value::number(&u64::MAX.to_string()),
            Value::text("1".repeat(64)),
        );
        assert_eq!(from_bits(&all), Ok(ones.clone()));
        assert_eq!(from_digits(&ones), Ok(all));
        assert!(from_digits(&Value::text("1".repeat(65))).is_err());
        assert_eq!(Takes::Bits(5).taken(None, five.clone()), Ok(five));
        let same = Takes::Bits(5).taken(Some(Takes::Bits(5)), Value::Int(5));
        assert_eq!(same, Ok(Value::Int(5)));
    }

    #[test]
    fn values_stay_what_they_are_or_are_refused() {
        let base64 = || Value::text("MQ==");
        let bytes = |bytes: &[u8]| Value::Bytes(bytes.into());
        for (takes, value, expected) in [
            (Takes::Bytes, base64(), Ok(bytes(b"MQ=="))),
            (
                Takes::BytesOrTexts,
                base64(),
                Ok(Value::Json("MQ==".into())),
            ),
            (Takes::BytesOrTexts, bytes(b"1"), Ok(bytes(b"1"))),
            (Takes::Text, bytes(b"1"), Ok(Value::text("1"))),
            (
                Takes::Text,
                bytes(b"\xff"),
                Err("binary data that is no text"),
            ),
            (Takes::Json, base64(), Ok(Value::Json("MQ==".into()))),
            (
                Takes::Array,
                Value::text("[1]"),
                Ok(Value::Json("[1]".into())),
            ),
            (
                Takes::Array,
                Value::text("[0:0]={1}"),
                Ok(Value::text("[0:0]={1}")),
            ),
            (Takes::Whole, Value::number("1.50"), Err("no whole number")),
            (
                Takes::Whole,
                Value::number("1.00"),
                Ok(Value::number("1.00")),
            ),
            (Takes::Number, bytes(b"1"), Err("binary data")),
            (
                Takes::Double,
                Value::text("Infinity"),
                Ok(Value::Number("Infinity".into())),
            ),
            (Takes::Double, Value::text("x"), Ok(Value::text("x"))),
            (Takes::Bytes, Value::Int(1), Ok(Value::Int(1))),
        ] {
            assert_eq!(takes.taken(None, value), expected, "{takes:?}");
        }
        let told_apart = Takes::Double.taken(Some(Takes::Double), Value::text("Infinity"));
        assert_eq!(told_apart, Ok(Value::text("Infinity")));
    }
}
