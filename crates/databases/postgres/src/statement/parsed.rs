//! Reads facts about a parsed statement from its own expressions.

use windrow_core::{Conflict, Expression, Name, ParsedStatement, Piece};

use crate::catalog::table::Facts;

/// Returns the columns that an insert gives values to, with the expressions; `None` if they are not
/// known one by one.
pub(crate) fn given<'a>(
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

/// Returns the parameter if the expression consists of a parameter alone.
pub(crate) fn bare(expression: &Expression) -> Option<usize> {
    match expression {
        Expression::Sql(pieces) => match &**pieces {
            [Piece::Parameter(place)] => Some(usize::from(*place)),
            _ => None,
        },
        Expression::Default => None,
    }
}

/// Returns true if the text contains one of the words, which are in lower case.
pub(crate) fn has_word(sql: &str, words: &[&str]) -> bool {
    let sql = sql.to_ascii_lowercase();
    words.iter().any(|word| sql.contains(word))
}

/// Returns true if DO UPDATE sets the column.
pub(crate) fn sets(conflict: &Conflict, column: &str) -> bool {
    conflict
        .assignments
        .iter()
        .any(|(name, _)| **name == *column)
}

/// Returns true if a value of the expression depends on a parameter.
pub(crate) fn has_parameters(expression: &Expression) -> bool {
    match expression {
        Expression::Sql(pieces) => pieces.iter().any(|p| matches!(p, Piece::Parameter(_))),
        Expression::Default => false,
    }
}

pub(crate) fn uses(expression: &Expression, place: usize) -> bool {
    match expression {
        Expression::Sql(pieces) => pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Parameter(n) if usize::from(*n) == place)),
        Expression::Default => false,
    }
}
