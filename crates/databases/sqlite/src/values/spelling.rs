//! Reads a key in a path.
//!
//! A path holds only texts, and a column of SQLite holds values of any type. For a column of texts
//! the path's text is the value. For a column of bytes it is base64. For all other columns it is
//! JSON: a number, `true` and `false`, a text in quotation marks, an array, an object. A text that
//! is no JSON is a text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windrow_core::value::is_number;

use super::column::ColumnType;
use crate::values::packed::Datum;

/// A text of a path, read for its column.
#[derive(Debug, PartialEq)]
pub(crate) enum Spelling<'t> {
    /// The text itself.
    Plain,
    /// Another value.
    Value(Datum<'t>),
    /// The text between quotation marks.
    Quoted(String),
}

impl<'t> Spelling<'t> {
    /// Reads the text.
    pub(crate) fn read(text: &'t str, column: ColumnType) -> Self {
        match column {
            ColumnType::Text => return Self::Plain,
            ColumnType::Blob if STANDARD.decode(text).is_ok() => return Self::Plain,
            _ => {}
        }
        match text {
            "true" => Self::Value(Datum::Bool(true)),
            "false" => Self::Value(Datum::Bool(false)),
            _ if is_number(text.as_bytes()) => Self::Value(number(text)),
            _ if text.starts_with(['[', '{']) => Self::Value(Datum::Json(text)),
            _ if text.starts_with('"') => {
                serde_json::from_str(text).map_or(Self::Plain, Self::Quoted)
            }
            _ => Self::Plain,
        }
    }
}

/// Returns a number, as [`windrow_core::Value::number`] does.
pub(crate) fn number(text: &str) -> Datum<'_> {
    match text.parse() {
        Ok(n) if text != "-0" => Datum::Int(n),
        _ => Datum::Number(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_columns_type_says_how_a_text_is_read() {
        use ColumnType::*;
        for column in [Any, Bool, Decimal, Integer, Json, Numeric, Real] {
            for (text, expected) in [
                ("1", Spelling::Value(Datum::Int(1))),
                ("1.50", Spelling::Value(Datum::Number("1.50"))),
                ("true", Spelling::Value(Datum::Bool(true))),
                ("\"1\"", Spelling::Quoted("1".into())),
                ("\"a\\\"\"", Spelling::Quoted("a\"".into())),
                ("\"a", Spelling::Plain),
                ("007", Spelling::Plain),
                ("a", Spelling::Plain),
                ("null", Spelling::Plain),
            ] {
                assert_eq!(Spelling::read(text, column), expected, "{text} {column:?}");
            }
        }
        for text in ["\"1\"", "true", "a", "1"] {
            assert_eq!(Spelling::read(text, Text), Spelling::Plain, "{text}");
        }
        assert_eq!(Spelling::read("1234", Blob), Spelling::Plain);
        let number = Spelling::Value(Datum::Int(12));
        assert_eq!(Spelling::read("12", Blob), number);
        let array = Spelling::Value(Datum::Json("[1]"));
        assert_eq!(Spelling::read("[1]", Blob), array);
    }
}
