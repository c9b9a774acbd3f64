//! Proves which writes may be joined, by a list of what is allowed: a table's definition calls only
//! functions of the list, and its triggers only set columns of the new row, or refuse it.

mod functions;
mod grants;
#[cfg(test)]
mod tests;
mod token;
mod trigger;

pub(crate) use self::grants::{has_privilege, may_see_triggers};
use self::token::{Piece, Token};

/// Proves that a table's definition computes the same with other writes in the transaction as
/// without: defaults, generated columns, checks, keys over expressions, partitions. `definition` is
/// the result of SHOW CREATE TABLE.
///
/// # Errors
/// The word that is not on the list.
pub(crate) fn definition(definition: &str) -> Result<(), String> {
    let tokens = token::tokens(definition, true).ok_or_else(|| "its definition".to_owned())?;
    for (at, token) in tokens.iter().enumerate() {
        let opens = tokens.get(at + 1).is_some_and(|next| next.is_sign('('));
        let argument = tokens.get(at + 2).is_some_and(|next| !next.is_sign(')'));
        match token.piece {
            Piece::Sign('@' | ':') => return Err("a variable".to_owned()),
            // A sequence of RAND with a seed continues from row to row.
            Piece::Word(_) if token.is("rand") && opens && argument => {
                return Err("the function rand with a seed".to_owned());
            }
            Piece::Word(word)
                if opens && !functions::is_function(word) && !functions::defines(word) =>
            {
                return Err(format!("the function {word}"));
            }
            Piece::Name(name) if opens && !names_columns(&tokens, at) => {
                return Err(format!("the function {name}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true if the parenthesis after a name holds columns, or the length of a key's prefix:
/// `KEY name (..)`, `REFERENCES table (..)`, `column(5)`.
fn names_columns(tokens: &[Token<'_>], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|at| tokens.get(at));
    let is = |n: usize, words: &[&str]| {
        before(n).is_some_and(|token| words.iter().any(|word| token.is(word)))
    };
    let behind = |n: usize| tokens.get(at + n);
    let part = behind(2).is_some_and(|t| t.piece == Piece::Literal)
        && behind(3).is_some_and(|t| t.is_sign(')'));
    part || is(1, &["KEY", "INDEX", "REFERENCES", "TABLE", "FOR"])
        || before(1).is_some_and(|dot| dot.is_sign('.')) && is(3, &["REFERENCES"])
}

/// Returns the columns of the new row that a trigger's body names, which include all that it may
/// set; `None` if the body cannot be parsed. `mode` is the `sql_mode` of the trigger.
pub(crate) fn named_in(body: &str, mode: &str) -> Option<Vec<String>> {
    if mode.split(',').any(|flag| ODD_MODES.contains(&flag)) {
        return None;
    }
    let tokens = token::tokens(body, false)?;
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token
            .name()
            .is_some_and(|name| name.eq_ignore_ascii_case("NEW"))
            && tokens.get(at + 1).is_some_and(|dot| dot.is_sign('.'))
        {
            names.push(tokens.get(at + 2)?.name()?.to_owned());
        }
    }
    Some(names)
}

/// Modes in which the server parses a text differently.
const ODD_MODES: [&str; 3] = ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE"];

/// Returns the columns that a trigger sets, if it does nothing else but refuse rows. `mode` is the
/// `sql_mode` of the trigger.
///
/// # Errors
/// The word of the body that is not on the list.
pub(crate) fn trigger(body: &str, mode: &str) -> Result<Vec<String>, String> {
    let odd = mode.split(',').find(|flag| ODD_MODES.contains(flag));
    match odd {
        Some(flag) => Err(format!("the sql_mode {flag}")),
        None => trigger::read(body),
    }
}
