//! The effect of a statement on its session, if its words show all of it.
//!
//! What a statement runs, and the effects of that, are not determined here: the PostgreSQL frontend
//! looks up the names of the text in the catalog ([`crate::names`]).

mod asking;
mod config;
mod sequences;
mod session;

pub(crate) use config::set_locally;
pub use sequences::{Sequences, answered, sequences};

use crate::ddl::only_defines;
use crate::kinds::{self, Property};
use crate::lex::TokenKind;
use crate::parse::UNCLEAR;
use crate::reading::{Apart, Effect};
use crate::words::Words;

/// Returns the reason why the statement is not joined, as far as its first word shows it, and its
/// effect.
pub(crate) fn apart(words: Words<'_>) -> Apart {
    let first = words.slice(0).to_ascii_lowercase();
    let is_odd = words.tokens.iter().any(|t| t.kind == TokenKind::Odd);
    let (reason, effect) = match (words.kind(0), kinds::kind(&first)) {
        _ if is_odd => (UNCLEAR, Effect::Other),
        (TokenKind::End, _) => ("empty", Effect::Empty),
        (TokenKind::Open, _) => ("SELECT", query(words)),
        (TokenKind::Word, Some((reason, _))) => (reason, named(words, &first)),
        _ => (UNCLEAR, Effect::Other),
    };
    Apart { reason, effect }
}

fn named(words: Words<'_>, first: &str) -> Effect {
    match first {
        "explain" => explain(words),
        // The parenthesis after a table contains columns.
        "copy" if words.kind(1) != TokenKind::Open => Effect::Other,
        // The statement contains a query that runs at once.
        "create" if !only_defines(words) => query(words),
        _ if kinds::has(first, Property::Queries) => query(words),
        _ => session::read(words, first).unwrap_or(Effect::Other),
    }
}

/// Returns the effect of a statement that evaluates expressions.
fn query(words: Words<'_>) -> Effect {
    let asked = asking::generated(words);
    asked
        .or_else(|| config::setting(words))
        .unwrap_or(Effect::Other)
}

/// Returns the effect of EXPLAIN, which runs its statement with ANALYZE only.
fn explain(words: Words<'_>) -> Effect {
    let mut at = 1;
    let mut analyze = false;
    if words.kind(1) == TokenKind::Open
        && !words.any(2, &["select", "with", "values", "table"])
        && words.kind(2) != TokenKind::Open
    {
        while !matches!(words.kind(at), TokenKind::Close | TokenKind::End) {
            let off = words.any(at + 1, &["off", "false"]) || words.slice(at + 1) == "0";
            analyze |= words.any(at, &["analyze", "analyse"]) && !off;
            at += 1;
        }
        at += 1;
    } else {
        while words.any(at, &["analyze", "analyse", "verbose"]) {
            analyze |= !words.is(at, "verbose");
            at += 1;
        }
    }
    // The server explains no EXPLAIN.
    if words.is(at, "explain") {
        return Effect::Other;
    }
    match apart(words.from(at)).effect {
        Effect::Lastval | Effect::Currval(_) | Effect::AsksForGenerated if analyze => {
            Effect::AsksForGenerated
        }
        _ => Effect::Other,
    }
}

/// Combines the effects of several statements.
pub(crate) fn several(effects: Vec<Effect>) -> Effect {
    let is_plain = |effect: &Effect| matches!(effect, Effect::Other | Effect::Empty);
    match effects.iter().all(is_plain) {
        true => Effect::Other,
        false => Effect::Several(effects.into()),
    }
}
