//! Checks that expressions call only harmless functions and read nothing but their own row.
//!
//! The server parses an expression itself, so this is not a grammar. It allows only tokens that
//! cannot lead to anything else, and finds the end of the expression.

use windrow_core::Expression;

use super::functions::{CallKind, call};
use super::reader::Reader;
use super::reserved::is_reserved;
use crate::lex::TokenKind;
use crate::parse::{DEPTH, Refusal, SUBQUERY, SYNTAX};
use crate::word::listed;

/// The deepest nesting of parentheses.
const MAX_DEPTH: u32 = 60;

const SESSION: Refusal = "a function that depends on the session";
const STORED: Refusal = "a function that the server may not have itself";
const VARIABLE: Refusal = "a variable";
const SEQUENCE: Refusal = "a sequence";
const BRACES: Refusal = "an escape in braces";

/// Words after which a parenthesis contains an expression or a list of them.
#[rustfmt::skip]
const OPENING: [&str; 23] = [
    "and", "between", "binary", "by", "case", "collate", "div", "else", "escape", "in", "interval",
    "is", "like", "mod", "not", "or", "regexp", "rlike", "then", "using", "when", "where", "xor",
];

/// Other reserved words that may occur in an expression.
#[rustfmt::skip]
const PARTS: [&str; 58] = [
    "as", "asc", "bigint", "both", "char", "character", "collate", "convert", "current_date",
    "current_time", "current_timestamp", "day_hour", "day_microsecond", "day_minute",
    "day_second", "dec", "decimal", "desc", "double", "end", "false", "float", "for", "from",
    "hour_microsecond", "hour_minute", "hour_second", "if", "insert", "int", "integer",
    "leading", "left", "localtime", "localtimestamp", "minute_microsecond", "minute_second",
    "null", "numeric", "precision", "real", "repeat", "replace", "right", "second_microsecond",
    "set", "smallint", "tinyint", "trailing", "true", "unsigned", "utc_date", "utc_time",
    "utc_timestamp", "values", "varchar", "year_month", "zerofill",
];

/// Types that may have a length in CAST.
const TYPES: [&str; 9] = [
    "binary", "char", "datetime", "dec", "decimal", "double", "float", "nchar", "time",
];

/// Words that ask for the session's user without a parenthesis.
const USERS: [&str; 4] = [
    "current_role",
    "current_user",
    "session_user",
    "system_user",
];

/// Words that end an expression outside of all parentheses.
const ENDING: [&str; 6] = ["as", "limit", "on", "order", "returning", "where"];

/// An expression, by its tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpressionPart {
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if it may read columns.
    pub(super) has_columns: bool,
}

/// Reads DEFAULT or an expression up to a comma, a parenthesis or a word that ends it. The second
/// value is true if it may read columns.
pub(super) fn item(reader: &mut Reader<'_>) -> Result<(Expression, bool), Refusal> {
    let is_default = reader.is_word_at(reader.at, "default");
    if is_default && reader.kind_at(reader.at + 1) != TokenKind::Open {
        reader.at += 1;
        return Ok((Expression::Default, false));
    }
    let part = expression(reader, EndingWords::End)?;
    Ok((reader.expression_of(part.from, part.to)?, part.has_columns))
}

/// The meaning of the words that end an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EndingWords {
    /// Each of them ends the expression outside of parentheses.
    End,
    /// None of them ends it: the expression belongs to RETURNING, and may have a name.
    Belong,
}

/// Reads an expression and checks each of its tokens.
pub(super) fn expression(
    reader: &mut Reader<'_>,
    words: EndingWords,
) -> Result<ExpressionPart, Refusal> {
    let from = reader.at;
    let (mut depth, mut has_columns) = (0_u32, false);
    loop {
        let at = reader.at;
        match reader.kind() {
            TokenKind::End => break,
            TokenKind::Comma | TokenKind::Close if depth == 0 => break,
            TokenKind::Word
                if depth == 0 && words == EndingWords::End && reader.is_any_at(at, &ENDING) =>
            {
                break;
            }
            TokenKind::Open => {
                open(reader, at, from)?;
                depth += 1;
            }
            TokenKind::Close => depth -= 1,
            TokenKind::Word if reader.kind_at(at.wrapping_sub(1)) == TokenKind::Dot => {}
            TokenKind::Word => has_columns |= word(reader, at)?,
            TokenKind::Quoted => has_columns = true,
            TokenKind::Operator => operator(reader.slice_at(at))?,
            TokenKind::Text
            | TokenKind::Special
            | TokenKind::Bits
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Parameter
            | TokenKind::Comma
            | TokenKind::Dot => {}
            _ => return Err(SYNTAX),
        }
        if depth > MAX_DEPTH {
            return Err(DEPTH);
        }
        reader.at += 1;
    }
    if depth > 0 || reader.at == from {
        return Err(SYNTAX);
    }
    Ok(ExpressionPart {
        from,
        to: reader.at,
        has_columns,
    })
}

fn operator(operator: &str) -> Result<(), Refusal> {
    match operator {
        "@" | "@@" | ":=" => Err(VARIABLE),
        "{" | "}" => Err(BRACES),
        _ => Ok(()),
    }
}

/// Checks a word that does not follow a point. Returns true if it may be a column.
fn word(reader: &Reader<'_>, at: usize) -> Result<bool, Refusal> {
    let word = reader.slice_at(at);
    let is_call = reader.kind_at(at + 1) == TokenKind::Open && reader.are_adjacent(at);
    if reader.is_any_at(at, &["select", "exists", "with", "table", "union"]) {
        return Err(SUBQUERY);
    }
    if reader.is_any_at(at, &["next", "previous"]) && reader.is_word_at(at + 1, "value") {
        return Err(SEQUENCE);
    }
    if reader.is_word_at(at, "values") && !is_inserted_value(reader, at) {
        return Err(SYNTAX);
    }
    if is_call {
        return Ok(false);
    }
    if listed(&USERS, word) {
        return Err(SESSION);
    }
    if listed(&OPENING, word) || listed(&PARTS, word) {
        return Ok(false);
    }
    match is_reserved(word, reader.modes) {
        true => Err(SYNTAX),
        false => Ok(!is_unit(reader, at)),
    }
}

/// Returns true for a word that cannot be a column: a unit after a value, a type, a character set.
fn is_unit(reader: &Reader<'_>, at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else {
        return false;
    };
    match reader.kind_at(before) {
        TokenKind::Integer | TokenKind::Decimal | TokenKind::Text | TokenKind::Parameter => true,
        TokenKind::Close => true,
        _ => reader.is_any_at(before, &["as", "using", "collate"]),
    }
}

/// Returns true for `VALUES(column)`, the value that an INSERT was about to store. VALUES before
/// anything else is a query.
fn is_inserted_value(reader: &Reader<'_>, at: usize) -> bool {
    reader.kind_at(at + 1) == TokenKind::Open
        && matches!(reader.kind_at(at + 2), TokenKind::Word | TokenKind::Quoted)
        && matches!(reader.kind_at(at + 3), TokenKind::Close | TokenKind::Dot)
}

/// Checks a parenthesis by the token before it.
fn open(reader: &mut Reader<'_>, at: usize, from: usize) -> Result<(), Refusal> {
    if at == from {
        return Ok(());
    }
    let before = at - 1;
    match reader.kind_at(before) {
        TokenKind::Open | TokenKind::Comma | TokenKind::Operator => Ok(()),
        TokenKind::Word => {
            let name = reader.slice_at(before);
            let is_behind_point = before > from && reader.kind_at(before - 1) == TokenKind::Dot;
            if is_behind_point {
                return Err(STORED);
            }
            if !reader.are_adjacent(before) {
                return match listed(&OPENING, name) || reader.is_word_at(before, "values") {
                    true => Ok(()),
                    false => Err(STORED),
                };
            }
            opens_call(reader, before, from)
        }
        TokenKind::Quoted => Err(STORED),
        _ => Err(SYNTAX),
    }
}

/// Checks a word directly before a parenthesis.
fn opens_call(reader: &mut Reader<'_>, at: usize, from: usize) -> Result<(), Refusal> {
    let name = reader.slice_at(at);
    let is_type = at > from && reader.is_word_at(at - 1, "as") && listed(&TYPES, name);
    // VALUES(column) is the value that an INSERT was about to store; MariaDB also writes VALUE.
    let is_values = reader.is_word_at(at, "values")
        || (reader.modes.is_mariadb && reader.is_word_at(at, "value"));
    if is_type || is_values || listed(&OPENING, name) {
        return Ok(());
    }
    match call(name, reader.modes) {
        CallKind::Harmless => {
            reader.note_function(name);
            Ok(())
        }
        CallKind::OfSession => Err(SESSION),
        CallKind::Stored => Err(STORED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(OPENING.is_sorted());
        assert!(PARTS.is_sorted());
        assert!(TYPES.is_sorted());
        assert!(USERS.is_sorted());
        assert!(ENDING.is_sorted());
    }
}
