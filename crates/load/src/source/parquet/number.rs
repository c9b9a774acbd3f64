//! Numbers of Parquet as texts.

use super::kind::Kind;
use super::text;

/// A whole number.
pub(super) fn int(value: impl itoa::Integer, out: &mut String) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// A number with so many digits behind the point.
pub(super) fn decimal(value: impl itoa::Integer, scale: i8, out: &mut String) {
    text::decimal(itoa::Buffer::new().format(value), scale, out);
}

/// The shortest text that gives the same number again. What is no number in JSON is a text, spelled
/// as PostgreSQL does.
pub(super) fn float<F: Copy + std::fmt::Debug + Into<f64>>(
    value: F,
    is_finite: fn(F) -> bool,
    out: &mut String,
) -> Kind {
    use std::fmt::Write;
    if is_finite(value) {
        // Writing into a String cannot fail.
        write!(out, "{value:?}").ok();
        return Kind::Number;
    }
    let value: f64 = value.into();
    out.push_str(if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    });
    Kind::Text
}
