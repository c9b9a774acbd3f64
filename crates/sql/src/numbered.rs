//! Parses rows of VALUES with a number each, as the source of an INSERT.

use std::collections::BTreeSet;

use crate::clause::names;
use crate::lex::TokenKind;
use crate::parse::{Parser, Refusal, SYNTAX};
use crate::types::type_name;

/// A part of a text, by its tokens.
pub(crate) type Part = std::ops::Range<usize>;

/// Parses rows with a number each that gives their order, as SQLAlchemy sends them:
///
/// ```sql
/// SELECT p0::INTEGER, p1::VARCHAR
/// FROM (VALUES ($1::INTEGER, $2::VARCHAR, 0), ($3::INTEGER, $4::VARCHAR, 1))
///     AS imp_sen(p0, p1, sen_counter)
/// ORDER BY sen_counter
/// ```
///
/// Each value is a parameter with the cast that its column has, so the outer cast changes nothing.
/// The numbers must be ascending.
pub(crate) fn numbered_rows(parser: &mut Parser<'_>) -> Result<Vec<Vec<Part>>, Refusal> {
    parser.expect_word("select")?;
    let columns = parser.list(|parser| Ok((parser.column_name()?, cast(parser)?)))?;
    parser.expect_word("from")?;
    parser.expect(TokenKind::Open)?;
    parser.expect_word("values")?;
    let casts: Vec<&str> = columns.iter().map(|(_, cast)| *cast).collect();
    let mut last = None;
    let rows = parser.list(|parser| numbered_row(parser, &casts, &mut last))?;
    parser.expect(TokenKind::Close)?;
    parser.expect_word("as")?;
    parser.column_name()?;
    let names = names(parser)?;
    if !parser.words(&["order", "by"]) {
        return Err(SYNTAX);
    }
    let number = parser.column_name()?;
    let expected = columns.iter().map(|(name, _)| name).chain([&number]);
    let once: BTreeSet<_> = names.iter().collect();
    match once.len() == names.len() && names.iter().eq(expected) {
        true => Ok(rows),
        false => Err(SYNTAX),
    }
}

/// Parses `($1::INTEGER, $2::VARCHAR, 0)`. `last` is the number of the row before.
fn numbered_row(
    parser: &mut Parser<'_>,
    casts: &[&str],
    last: &mut Option<u32>,
) -> Result<Vec<Part>, Refusal> {
    parser.expect(TokenKind::Open)?;
    let mut row = Vec::with_capacity(casts.len());
    for expected in casts {
        let from = parser.at;
        parser.expect(TokenKind::Parameter)?;
        if !cast(parser)?.eq_ignore_ascii_case(expected) {
            return Err(SYNTAX);
        }
        row.push(from..parser.at);
        parser.expect(TokenKind::Comma)?;
    }
    let number = parser.slice(0).parse().map_err(|_| SYNTAX)?;
    parser.expect(TokenKind::Integer)?;
    parser.expect(TokenKind::Close)?;
    let rises = last.replace(number).is_none_or(|last| number > last);
    if rises { Ok(row) } else { Err(SYNTAX) }
}

/// Parses `::type`.
fn cast<'a>(parser: &mut Parser<'a>) -> Result<&'a str, Refusal> {
    let from = parser.at;
    parser.expect(TokenKind::Cast)?;
    type_name(parser)?;
    Ok(parser.text_of(from, parser.at))
}
