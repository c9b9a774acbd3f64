//! What can be told of a parsed statement from its own expressions.

use windrow_calls::{Expression, ParsedStatement, Piece};
use windrow_core::Name;

use crate::catalog::table::Facts;

/// The columns that an insert gives values to, with the expressions; `None`: they are not known one
/// by one.
pub(super) fn given<'a>(
    parsed: &'a ParsedStatement,
    facts: &'a Facts,
) -> Option<Vec<(&'a Name, &'a Expression)>> {
    if !parsed.set_based {
        return None;
    }
    let names: Vec<&Name> = match &parsed.columns {
        Some(names) => names.iter().collect(),
        None => facts.columns.iter().map(|c| &c.name).collect(),
    };
    let given = names.into_iter().zip(&*parsed.values);
    Some(
        given
            .filter(|(_, value)| **value != Expression::Default)
            .collect(),
    )
}

/// The parameter that an expression is, where it is nothing else.
pub(super) fn bare(expression: &Expression) -> Option<usize> {
    match expression {
        Expression::Sql(pieces) => match &**pieces {
            [Piece::Parameter(place)] => Some(usize::from(*place)),
            _ => None,
        },
        Expression::Default => None,
    }
}

/// Whether a word stands anywhere in an expression.
pub(super) fn mentions(expression: &Expression, word: &str) -> bool {
    let Expression::Sql(pieces) = expression else {
        return word == "default";
    };
    pieces.iter().any(|piece| match piece {
        Piece::Text(sql) => has_word(sql, &[word]),
        Piece::Parameter(_) => false,
    })
}

/// Whether one of the words is a part of a text.
pub(super) fn has_word(sql: &str, words: &[&str]) -> bool {
    let sql = sql.to_ascii_lowercase();
    words.iter().any(|word| sql.contains(word))
}

/// Whether an expression may set a column: it names it, and not only as a part of a longer name
/// (`excluded.a`).
pub(super) fn sets(conflict: &Expression, name: &Name) -> bool {
    let Expression::Sql(pieces) = conflict else {
        return false;
    };
    pieces.iter().any(|piece| match piece {
        Piece::Text(sql) => names(behind_set(sql), name),
        Piece::Parameter(_) => false,
    })
}

/// What stands behind DO UPDATE SET, where these words are found.
fn behind_set(sql: &str) -> &str {
    let lower = sql.to_ascii_lowercase();
    match lower
        .find("update")
        .and_then(|at| Some(at + lower.get(at..)?.find("set")?))
    {
        Some(at) => sql.get(at..).unwrap_or(sql),
        None => sql,
    }
}

fn names(sql: &str, name: &str) -> bool {
    let sql = sql.to_lowercase();
    let name = name.to_lowercase();
    let mut from = 0;
    while let Some(at) = sql.get(from..).and_then(|rest| rest.find(&name)) {
        let start = from + at;
        let before = sql
            .get(..start)
            .unwrap_or_default()
            .trim_end_matches(['"', ' ', '\n', '\t']);
        let after = sql
            .get(start + name.len()..)
            .and_then(|rest| rest.chars().next());
        let whole = sql.get(..start).and_then(|rest| rest.chars().last());
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        if !in_word(whole) && !in_word(after) && !before.ends_with('.') {
            return true;
        }
        from = start + name.len().max(1);
    }
    false
}

pub(super) fn has_parameters(expression: &Expression) -> bool {
    match expression {
        Expression::Sql(pieces) => pieces.iter().any(|p| matches!(p, Piece::Parameter(_))),
        Expression::Default => false,
    }
}

pub(super) fn uses(expression: &Expression, place: usize) -> bool {
    match expression {
        Expression::Sql(pieces) => pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Parameter(n) if usize::from(*n) == place)),
        Expression::Default => false,
    }
}
