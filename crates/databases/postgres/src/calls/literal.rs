//! Literals that may be values of parameters.
//!
//! The server reads a literal when it parses the statement, and a value when it binds it. Both give
//! the same if the type accepts the text under any setting and at any time. Types of which that is
//! unknown here accept no literal.

use serde::de::IgnoredAny;

use super::carrier::Carrier;
use crate::catalog::column::{Kind, oid};
use crate::catalog::table::Facts;
use crate::values::fit::Fit;
use crate::values::time;

/// The longest decimal number that is read, in bytes.
const MAX_DIGITS: usize = 200;

/// Returns true if a parameter of this type accepts the literal; `None` is NULL.
pub(super) fn takes(parameter: u32, literal: Option<&[u8]>, facts: &Facts) -> bool {
    if let Some(labels) = labels(parameter, facts) {
        return literal.is_none_or(|text| labels.iter().any(|label| label.as_bytes() == text));
    }
    match parameter {
        oid::TEXT | oid::VARCHAR | oid::BPCHAR => true,
        oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 => {
            is_sure(parameter, literal)
        }
        oid::BOOL | oid::UUID | oid::BYTEA => is_sure(parameter, literal),
        oid::NUMERIC => literal.is_none_or(is_decimal),
        oid::JSON | oid::JSONB => literal.is_none_or(is_json),
        oid::DATE => literal.is_none_or(|text| text_of(text).is_some_and(is_date)),
        oid::TIMESTAMP => literal.is_none_or(|text| text_of(text).is_some_and(is_local)),
        oid::TIMESTAMPTZ => literal.is_none_or(|text| text_of(text).is_some_and(is_moment)),
        _ => false,
    }
}

/// Returns true if a built-in type accepts a text under any setting of the session. False for
/// types that are not read here.
pub(super) fn is_usual(type_oid: u32, text: &[u8]) -> bool {
    match type_oid {
        oid::DATE => text_of(text).is_some_and(is_date),
        oid::TIMESTAMP => text_of(text).is_some_and(is_local),
        oid::FLOAT4 | oid::FLOAT8 | oid::BOOL | oid::UUID | oid::BYTEA => {
            is_sure(type_oid, Some(text))
        }
        _ => false,
    }
}

/// Returns the labels of an enum, if a column of the table has that type.
fn labels(parameter: u32, facts: &Facts) -> Option<&[Box<str>]> {
    let mut columns = facts.columns.iter();
    columns.find_map(|column| match &column.kind {
        // Not a domain over one.
        Kind::Enum(labels) if [column.type_oid, column.base_oid] == [parameter; 2] => {
            Some(&**labels)
        }
        _ => None,
    })
}

/// Returns true if the literal has the type's usual spelling.
fn is_sure(parameter: u32, literal: Option<&[u8]>) -> bool {
    let carrier = Carrier::of_built_in(parameter);
    carrier.is_some_and(|carrier| carrier.fit(literal) == Fit::Sure)
}

/// Returns true for a decimal number, with an exponent of two digits at most.
pub(super) fn is_decimal(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let mut parts = unsigned.splitn(2, |byte| matches!(byte, b'e' | b'E'));
    let number = parts.next().unwrap_or_default();
    let has_digits = number.iter().any(u8::is_ascii_digit);
    let points = number.iter().filter(|byte| **byte == b'.').count();
    let is_number = number
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let exponent = parts.next().map(|digits| match digits {
        [b'-' | b'+', digits @ ..] => digits,
        digits => digits,
    });
    let is_small = exponent.is_none_or(|digits| {
        (1..=2).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
    });
    text.len() <= MAX_DIGITS && has_digits && points <= 1 && is_number && is_small
}

/// Returns true for JSON that both `json` and `jsonb` accept: without `\u` escapes, and without
/// exponents, which may be too large.
pub(super) fn is_json(text: &[u8]) -> bool {
    let is_exponent = |pair: &[u8]| matches!(pair, [b'0'..=b'9' | b'.', b'e' | b'E']);
    let has_number = memchr::memmem::find(text, b"\\u").is_some();
    let has_exponent = text.windows(2).any(is_exponent);
    !has_number && !has_exponent && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

fn text_of(literal: &[u8]) -> Option<&str> {
    std::str::from_utf8(literal).ok()
}

fn is_date(text: &str) -> bool {
    time::date(text).is_some()
}

/// Returns true for a time without a zone.
fn is_local(text: &str) -> bool {
    time::moment(text).is_some_and(|moment| !moment.has_zone())
}

fn is_moment(text: &str) -> bool {
    time::moment(text).is_some_and(time::Moment::has_zone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::POSTGRES;

    fn taken(parameter: u32, literal: &str) -> bool {
        let facts = Facts::unread(&windrow_core::TableName::bare("t"), &POSTGRES);
        takes(parameter, Some(literal.as_bytes()), &facts)
    }

    #[test]
    fn what_every_session_reads_the_same_is_taken() {
        for (parameter, literals) in [
            (oid::TEXT, &["", "now", "\u{1F600}"][..]),
            (oid::INT4, &["0", "-2147483648", "007"]),
            (oid::INT8, &["9223372036854775807"]),
            (oid::NUMERIC, &["1", "-1.50", ".5", "5.", "1e5", "1.5E-3"]),
            (oid::FLOAT8, &["1.5", "-2"]),
            (oid::BOOL, &["t", "false"]),
            (oid::UUID, &["00000000-0000-0000-0000-00000000000a"]),
            (oid::BYTEA, &["\\x00ff", "plain"]),
            (
                oid::JSONB,
                &["{}", "[1, 2.5]", "\"a\\\"b\"", "{\"a\": null}"],
            ),
            (oid::DATE, &["2024-02-29"]),
            (oid::TIMESTAMP, &["2024-02-29 10:00:00.5", "2024-02-29"]),
            (
                oid::TIMESTAMPTZ,
                &["2024-02-29T10:00:00Z", "2024-02-29 10:00+02"],
            ),
        ] {
            for literal in literals {
                assert!(taken(parameter, literal), "{parameter} {literal}");
            }
        }
    }

    #[test]
    fn what_may_fail_or_depends_on_a_setting_or_the_moment_is_not() {
        for (parameter, literals) in [
            (oid::INT4, &["", "x", "2147483648", " 1", "1_0"][..]),
            (
                oid::NUMERIC,
                &["", ".", "-", "NaN", "1e200000", "1.2.3", " 1"],
            ),
            (oid::FLOAT8, &["x", "1e400"]),
            (oid::BOOL, &["maybe"]),
            (oid::UUID, &["x"]),
            (oid::BYTEA, &["\\xf", "a\\b", "\u{e9}"]),
            (oid::JSONB, &["", "x", "{", "\"\\u0000\"", "1e400000"]),
            (
                oid::DATE,
                &["now", "today", "2024-02-30", "01/02/2024", "infinity"],
            ),
            (oid::TIMESTAMP, &["now", "2024-02-29 10:00Z", "yesterday"]),
            (oid::TIMESTAMPTZ, &["now", "tomorrow", "2024-02-29 10:00"]),
            (1186, &["1 day"]),
            (2205, &["pg_class"]),
            (0, &["x"]),
        ] {
            for literal in literals {
                assert!(!taken(parameter, literal), "{parameter} {literal}");
            }
        }
        let facts = Facts::unread(&windrow_core::TableName::bare("t"), &POSTGRES);
        assert!(takes(oid::INT4, None, &facts));
        assert!(!takes(99_999, None, &facts));
    }
}
