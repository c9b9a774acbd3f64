//! Numbers of Parquet as texts.

use super::kind::ValueKind;
use super::text;

/// Writes a whole number.
pub(super) fn int(value: impl itoa::Integer, out: &mut String) -> ValueKind {
    out.push_str(itoa::Buffer::new().format(value));
    ValueKind::Number
}

/// Writes a number with so many digits after the point.
pub(super) fn decimal(value: impl itoa::Integer, scale: i8, out: &mut String) -> ValueKind {
    text::decimal(itoa::Buffer::new().format(value), scale, out);
    ValueKind::Number
}

/// Writes the shortest text that gives the same number again. A value that is no number in JSON is
/// a text, spelled as in PostgreSQL.
pub(super) fn float<F: Copy + std::fmt::Debug + Into<f64>>(
    value: F,
    is_finite: fn(F) -> bool,
    out: &mut String,
) -> ValueKind {
    use std::fmt::Write;
    if is_finite(value) {
        // Writing into a String cannot fail.
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
