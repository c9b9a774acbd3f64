//! What may be joined is proven, by what is allowed and not by what is known to do harm: the
//! functions in a table's definition are those of a list, and its triggers do nothing but give
//! values to the new row, or refuse it.

mod functions;
mod grants;
#[cfg(test)]
mod tests;
mod token;
mod trigger;

pub(crate) use self::grants::may_see_triggers;
use self::token::{Piece, Token};

/// Whether all that a table's definition computes is the same in company as alone: defaults,
/// generated columns, checks, keys over expressions, partitions. `definition`: what SHOW CREATE
/// TABLE says.
///
/// # Errors
/// What stands in it that nothing is known of.
pub(crate) fn definition(definition: &str) -> Result<(), String> {
    let tokens = token::tokens(definition, true).ok_or_else(|| "its definition".to_owned())?;
    for (at, token) in tokens.iter().enumerate() {
        let opens = tokens.get(at + 1).is_some_and(|next| next.is_sign('('));
        let argument = tokens.get(at + 2).is_some_and(|next| !next.is_sign(')'));
        match token.piece {
            Piece::Sign('@' | ':') => return Err("a variable".to_owned()),
            // One that counts from a seed goes on from row to row.
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

/// Whether the parenthesis behind a name holds columns, or how much of one is a part of a key: `KEY
/// name (..)`, `REFERENCES table (..)`, `column(5)`.
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

/// Returns the columns of the new row that a trigger's body names, among them all that it may give
/// values to; `None` if the body cannot be read. `mode`: the `sql_mode` that it was made with.
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

/// Modes in which a text is read otherwise than here.
const ODD_MODES: [&str; 3] = ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE"];

/// The columns that a trigger gives values to, where that is all that it does besides refusing
/// rows. `mode`: the `sql_mode` that it was made with.
///
/// # Errors
/// What stands in its body that nothing is known of.
pub(crate) fn trigger(body: &str, mode: &str) -> Result<Vec<String>, String> {
    let odd = mode.split(',').find(|flag| ODD_MODES.contains(flag));
    match odd {
        Some(flag) => Err(format!("the sql_mode {flag}")),
        None => trigger::read(body),
    }
}
