//! Judges whether a value will fit its column, as far as that is possible without the server.
//!
//! A wrong guess costs speed, never correctness: a value that seems not to fit runs in a
//! transaction of its own, where the server itself decides.

#[cfg(test)]
mod tests;

use windrow_core::Value;
use windrow_proof::is_moment;

use super::{scalar, text};
use crate::catalog::column::{Column, Kind, may_name_moments};

/// A judgement of a value, from certain to impossible.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// The value is read here as the server reads it. It may travel in an array with others.
    Sure,
    /// Only the server can decide.
    Unsure,
    /// The server will probably refuse the value.
    Bad,
    /// The value has no text that could be sent to the server. The reason is given.
    Unwritable(String),
}

/// Judges a value for a column. `strict`: the server refuses NULL in a column that must not have it
/// (no trigger fills the column in).
pub(crate) fn fit(column: &Column, value: &Value, strict: bool) -> Fit {
    if value.is_null() {
        return sure_or(!(strict && column.not_null), Fit::Bad);
    }
    if column.no_value_yet {
        return Fit::Bad;
    }
    match &column.kind {
        // A plain spelling holds no word.
        Kind::Date if scalar::date(value).is_some() => Fit::Sure,
        Kind::Timestamp | Kind::Timestamptz if scalar::moment(value).is_some() => Fit::Sure,
        _ if names_a_moment(column, value) => Fit::Bad,
        Kind::Int2 => whole(value, i64::from(i16::MIN), i64::from(i16::MAX)),
        Kind::Int4 => whole(value, i64::from(i32::MIN), i64::from(i32::MAX)),
        Kind::Int8 => whole(value, i64::MIN, i64::MAX),
        Kind::Float4 => sure_or(scalar::single(value).is_some(), odd_number(value)),
        Kind::Float8 => sure_or(scalar::double(value).is_some(), odd_number(value)),
        Kind::Numeric => numeric(column, value),
        Kind::Bool => sure_or(scalar::boolean(value).is_some(), odd_boolean(value)),
        Kind::Uuid => sure_or(scalar::uuid(value).is_some(), Fit::Bad),
        Kind::Date | Kind::Timestamp | Kind::Timestamptz => odd_moment(value),
        Kind::Enum(labels) => sure_or(is_label(labels, value), Fit::Bad),
        Kind::Bytea => bytea(value),
        Kind::Array(..) => array(&column.kind, value),
        Kind::Jsonb => jsonb(value),
        Kind::Text | Kind::Char => short(column, value),
        Kind::Json | Kind::Composite | Kind::Other => no_zero(value),
    }
}

/// Returns true for `now` and similar words: in a shared transaction they would stand for the same
/// moment in all writes.
fn names_a_moment(column: &Column, value: &Value) -> bool {
    let (Value::Text(text) | Value::Json(text)) = value else {
        return false;
    };
    let may = may_name_moments(column.base_oid) || may_name_moments(column.array_oid);
    may && is_moment(text.as_bytes())
}

fn sure_or(sure: bool, otherwise: Fit) -> Fit {
    if sure { Fit::Sure } else { otherwise }
}

fn whole(value: &Value, least: i64, most: i64) -> Fit {
    match scalar::int(value) {
        Some(n) => sure_or((least..=most).contains(&n), Fit::Bad),
        // Newer servers read `0x1F` and `1_000`, all servers read blanks around the digits.
        None => Fit::Bad,
    }
}

fn odd_number(value: &Value) -> Fit {
    match value {
        Value::Text(text) if text.trim() != &**text => Fit::Unsure,
        _ => Fit::Bad,
    }
}

/// Judges a boolean that is not read here. `boolin` accepts a 0, a 1, and the beginnings of a few
/// words.
fn odd_boolean(value: &Value) -> Fit {
    let maybe = match value {
        Value::Int(n) => matches!(n, 0 | 1),
        Value::Text(text) => text
            .trim()
            .starts_with(['t', 'T', 'f', 'F', 'y', 'Y', 'n', 'N', 'o', 'O', '0', '1']),
        _ => false,
    };
    if maybe { Fit::Unsure } else { Fit::Bad }
}

/// Judges a moment that is not read here. There are many words such as `now`, and many other
/// spellings of dates. A text without any digit is most likely none of them.
fn odd_moment(value: &Value) -> Fit {
    match value {
        Value::Text(text) if text.bytes().any(|b| b.is_ascii_digit()) && !text.contains('\0') => {
            Fit::Unsure
        }
        _ => Fit::Bad,
    }
}

fn numeric(column: &Column, value: &Value) -> Fit {
    match value {
        Value::Int(_) if column.narrowed < 0 => Fit::Sure,
        Value::Int(n) => {
            let digits = n
                .unsigned_abs()
                .checked_ilog10()
                .map_or(0, |d| i64::from(d) + 1);
            sure_or(digits <= whole_digits(column), Fit::Bad)
        }
        Value::Number(text) | Value::Text(text) if scalar::is_numeric(text) => {
            let mantissa = text.trim_start_matches(['-', '+']).trim_start_matches('0');
            let point = mantissa.find(['.', 'e', 'E']).unwrap_or(mantissa.len());
            let plain = !mantissa.contains(['e', 'E']);
            let fits = column.narrowed < 0
                || !plain
                || i64::try_from(point).is_ok_and(|digits| digits <= whole_digits(column));
            sure_or(fits, Fit::Bad)
        }
        Value::Text(text) if text.eq_ignore_ascii_case("nan") => Fit::Sure,
        Value::Text(text) if text.to_ascii_lowercase().contains("inf") => Fit::Unsure,
        _ => odd_number(value),
    }
}

/// Returns the number of digits that a `numeric(precision, scale)` has before its point
/// (`NUMERIC_PRECISION` and `NUMERIC_SCALE` of `src/backend/utils/adt/numeric.c`; the scale is a
/// signed number of 11 bits).
fn whole_digits(column: &Column) -> i64 {
    let packed = i64::from(column.narrowed) - 4;
    let precision = (packed >> 16) & 0xffff;
    let scale = ((packed & 0x7ff) ^ 1024) - 1024;
    (precision - scale).max(0)
}

fn is_label(labels: &[Box<str>], value: &Value) -> bool {
    matches!(value, Value::Text(text) if labels.iter().any(|label| label == text))
}

fn bytea(value: &Value) -> Fit {
    match value {
        Value::Bytes(_) => Fit::Sure,
        Value::Text(text) if text.starts_with("\\x") => Fit::Unsure,
        Value::Text(text) => match text::decode_base64(text) {
            Ok(_) => Fit::Sure,
            Err(why) => Fit::Unwritable(why.0),
        },
        _ => Fit::Unsure,
    }
}

fn array(kind: &Kind, value: &Value) -> Fit {
    match text::push(kind, value, &mut Vec::new()) {
        Ok(()) => no_zero(value),
        Err(why) => Fit::Unwritable(why.0),
    }
}

fn jsonb(value: &Value) -> Fit {
    match value {
        // The server refuses this: a jsonb string must not hold a zero character.
        Value::Json(json) if json.contains("\\u0000") => Fit::Bad,
        _ => no_zero(value),
    }
}

fn short(column: &Column, value: &Value) -> Fit {
    let Some(longest) = column.longest() else {
        return no_zero(value);
    };
    let fits = match value {
        Value::Text(text) | Value::Number(text) | Value::Json(text) => {
            // A character takes at least one byte.
            text.len() <= longest || text.chars().count() <= longest
        }
        Value::Int(_) | Value::Bool(_) => longest >= 20,
        Value::Bytes(bytes) => 2 + 2 * bytes.len() <= longest,
        Value::Null => true,
    };
    if fits { no_zero(value) } else { Fit::Bad }
}

/// Refuses texts with a zero byte, which no text of the server may hold.
fn no_zero(value: &Value) -> Fit {
    match value {
        Value::Text(text) | Value::Json(text) | Value::Number(text) => {
            sure_or(memchr::memchr(0, text.as_bytes()).is_none(), Fit::Bad)
        }
        _ => Fit::Sure,
    }
}
