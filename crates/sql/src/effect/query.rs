//! The effect of a statement that reads or writes rows, which is the effect of its calls.

use super::{asking, config, functions};
use crate::lex::Kind;
use crate::reading::Effect;
use crate::word::{self, Use};
use crate::words::Words;

/// Anything that reads or writes rows.
pub(super) fn query(words: Words<'_>) -> Effect {
    if let Some(effect) = asking::generated(words) {
        return effect;
    }
    if let Some(effect) = config::setting(words) {
        return effect;
    }
    let mut effect = Effect::Nothing;
    for at in 0..words.len() {
        if words.names_a_temporary_schema(at) || (words.is(at, "into") && !writes_into(words, at)) {
            return Effect::Unknown;
        }
        if words.any(at, &["insert", "merge"]) {
            effect = Effect::Generates;
        }
        // A column's default may be a sequence.
        if words.is(at, "default") && words.is(0, "update") {
            effect = Effect::Generates;
        }
        if words.kind(at + 1) != Kind::Open {
            continue;
        }
        match call(words, at) {
            Effect::Nothing => {}
            Effect::Generates => effect = Effect::Generates,
            other => return other,
        }
    }
    effect
}

/// Returns true if the INTO at a token belongs to INSERT or MERGE, and not to a SELECT INTO after a
/// column called `insert` or `merge`.
fn writes_into(words: Words<'_>, at: usize) -> bool {
    if at == 0 || !words.any(at - 1, &["insert", "merge"]) {
        return false;
    }
    if at == 1 || words.kind(at - 2) == Kind::Open {
        return true;
    }
    // Behind WITH, the statement itself stands outside of all parentheses.
    let mut depth = 0_usize;
    for before in 0..at {
        match words.kind(before) {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ if depth == 0 && words.any(before, &["select", "values", "table"]) => return false,
            _ => {}
        }
    }
    depth == 0 && words.is(0, "with")
}

/// Returns the effect of the call at a token. A token that calls nothing has none.
fn call(words: Words<'_>, at: usize) -> Effect {
    let is_name = match words.kind(at) {
        Kind::Quoted => true,
        Kind::Word => {
            at > 0 && words.kind(at - 1) == Kind::Dot
                || match word::usage(words.slice(at)) {
                    Use::Reserved => false,
                    Use::Column => words.is(at, "treat"),
                    Use::Any | Use::Function => !functions::is_syntax(words, at),
                }
        }
        _ => false,
    };
    if !is_name {
        return Effect::Nothing;
    }
    let qualified = at > 1 && words.kind(at - 1) == Kind::Dot;
    let begin = if qualified { at - 2 } else { at };
    if declares(words, begin) {
        return Effect::Nothing;
    }
    if qualified {
        let twice = at > 2 && words.kind(at - 3) == Kind::Dot;
        if twice || words.identifier(at - 2).as_deref() != Some("pg_catalog") {
            return Effect::Unknown;
        }
    }
    match words.identifier(at) {
        Some(name) => functions::effect(&name),
        None => Effect::Unknown,
    }
}

/// Returns true if a name before a parenthesis is declared and not called: `INSERT INTO t (..)`,
/// `WITH t (..)`, `AS t (..)`.
fn declares(words: Words<'_>, at: usize) -> bool {
    match at {
        0 => false,
        1 => words.is(0, "with"),
        _ => {
            words.any(at - 1, &["into", "as"])
                || (at == 2 && words.is(0, "with") && words.is(1, "recursive"))
        }
    }
}

/// Returns the effect of a statement inside another one. A query for the last value of a sequence
/// is not recognized there.
pub(super) fn within(effect: Effect) -> Effect {
    match effect {
        Effect::Lastval | Effect::Currval(_) => Effect::AsksForGenerated,
        Effect::Nothing | Effect::Generates | Effect::AsksForGenerated => effect,
        _ => Effect::Unknown,
    }
}
