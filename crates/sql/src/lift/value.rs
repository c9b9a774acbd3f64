//! The values of literals.

use super::word::Word;
use crate::lex::TokenKind;
use crate::string;

/// The type number of `int4`.
pub(super) const INT4: u32 = 23;
/// The type number of `int8`.
pub(super) const INT8: u32 = 20;
/// The type number of `numeric`.
pub(super) const NUMERIC: u32 = 1700;
/// The type number of `bool`.
pub(super) const BOOL: u32 = 16;
/// The type number that lets the server decide.
pub(super) const UNKNOWN: u32 = 0;

/// Returns the type that the grammar gives a number with its sign.
fn number_type(kind: TokenKind, number: &str) -> u32 {
    if kind != TokenKind::Integer {
        return NUMERIC;
    }
    // A number of up to nine digits is always small enough.
    if number.len() <= 9 || number.parse::<i32>().is_ok() {
        INT4
    } else if number.parse::<i64>().is_ok() {
        INT8
    } else {
        NUMERIC
    }
}

/// Appends a number, and returns its type.
pub(super) fn append_number(
    values: &mut Vec<u8>,
    kind: TokenKind,
    digits: &str,
    negative: bool,
) -> Option<u32> {
    let start = values.len() + 4;
    append(values, |values| {
        if negative {
            values.push(b'-');
        }
        values.extend_from_slice(digits.as_bytes());
        Some(())
    })?;
    let number = std::str::from_utf8(values.get(start..)?).ok()?;
    Some(number_type(kind, number))
}

/// Appends a small number in decimal digits.
pub(super) fn write_number(text: &mut String, number: usize) {
    if number >= 10 {
        write_number(text, number / 10);
    }
    text.push(char::from(
        b'0' + u8::try_from(number % 10).unwrap_or_default(),
    ));
}

/// Appends the length of a value and the value.
fn append(values: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<()> {
    let start = values.len();
    values.extend_from_slice(&[0; 4]);
    let written = write(values);
    let length = values
        .len()
        .checked_sub(start + 4)
        .and_then(|n| i32::try_from(n).ok());
    match (written, length, values.get_mut(start..start + 4)) {
        (Some(()), Some(length), Some(place)) => {
            place.copy_from_slice(&length.to_be_bytes());
            Some(())
        }
        _ => {
            values.truncate(start);
            None
        }
    }
}

/// Appends bytes unchanged.
pub(super) fn append_bytes(values: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    append(values, |values| {
        values.extend_from_slice(bytes);
        Some(())
    })
}

/// Appends the value of NULL, TRUE or FALSE, and returns its type.
pub(super) fn append_word(values: &mut Vec<u8>, word: Word) -> Option<u32> {
    match word {
        Word::Null => values.extend_from_slice(&(-1_i32).to_be_bytes()),
        Word::True => append_bytes(values, b"t")?,
        Word::False => append_bytes(values, b"f")?,
        _ => return None,
    }
    Some(if word == Word::Null { UNKNOWN } else { BOOL })
}

/// Appends the content of a string literal. `None`, with nothing appended, if it depends on an
/// encoding.
pub(super) fn append_string(
    values: &mut Vec<u8>,
    kind: TokenKind,
    literal: &str,
    standard: bool,
) -> Option<()> {
    match kind {
        TokenKind::Text => {
            let body = literal.get(1..literal.len().checked_sub(1)?)?;
            append(values, |values| string::unquote(values, body, !standard))
        }
        TokenKind::Escape => {
            let body = literal.get(2..literal.len().checked_sub(1)?)?;
            append(values, |values| string::unquote(values, body, true))
        }
        TokenKind::Dollar => {
            let quote = literal.get(1..)?.find('$')? + 2;
            append_bytes(
                values,
                literal
                    .get(quote..literal.len().checked_sub(quote)?)?
                    .as_bytes(),
            )
        }
        _ => None,
    }
}
