//! The effect of a statement on its session, derived from its tokens.
//!
//! A call of a function has a parenthesis after the function's name. So if all names before
//! parentheses are known to be harmless, the text calls only harmless functions. (Operators, casts,
//! views and triggers may call functions too. Those that change the session are not supported.)

mod asking;
mod config;
mod functions;
mod joined;
mod query;
mod sequences;
mod session;
mod utility;

pub(crate) use functions::is_listed;
pub(crate) use joined::of_joined;
pub use sequences::{Sequences, answered, sequences};

use crate::lex::Kind;
use crate::parse::UNCLEAR;
use crate::reading::{Apart, Effect};
use crate::words::Words;
use query::{query, within};

/// Why the statement is not joined, as far as its first words tell, and what it does.
pub(crate) fn apart(words: Words<'_>) -> Apart {
    if words.tokens.iter().any(|t| t.kind == Kind::Odd) {
        return unknown(UNCLEAR);
    }
    let first = words.slice(0).to_ascii_lowercase();
    let (reason, effect) = match (words.kind(0), first.as_str()) {
        (Kind::End, _) => ("empty", Effect::Empty),
        (Kind::Open, _) => ("SELECT", query(words)),
        (Kind::Word, first) => named(words, first),
        _ => (UNCLEAR, Effect::Unknown),
    };
    Apart { reason, effect }
}

fn unknown(reason: &'static str) -> Apart {
    Apart {
        reason,
        effect: Effect::Unknown,
    }
}

fn named(words: Words<'_>, first: &str) -> (&'static str, Effect) {
    match first {
        "select" => ("SELECT", query(words)),
        "values" => ("VALUES", query(words)),
        "table" => ("TABLE", query(words)),
        "with" => ("WITH", query(words)),
        "insert" => ("INSERT", query(words)),
        "update" => ("UPDATE", query(words)),
        "delete" => ("DELETE", query(words)),
        "merge" => ("MERGE", query(words)),
        "copy" => ("COPY", utility::copy(words)),
        "explain" => ("EXPLAIN", explain(words)),
        "declare" if words.has("hold") => ("DECLARE", Effect::Unknown),
        "declare" => ("DECLARE", query(words.from(2))),
        "create" => ("CREATE", utility::create(words)),
        "alter" if words.any(1, &["table", "foreign", "materialized"]) => {
            ("ALTER", Effect::Generates)
        }
        "alter" => ("ALTER", utility::unless_temporary(words)),
        "drop" => ("DROP", Effect::Nothing),
        "comment" | "grant" | "revoke" | "truncate" | "reindex" | "cluster" | "refresh"
        | "security" | "import" | "reassign" => ("DDL", Effect::Nothing),
        "vacuum" | "analyze" | "analyse" | "checkpoint" => ("maintenance", Effect::Nothing),
        "lock" => ("LOCK", Effect::Nothing),
        "notify" => ("NOTIFY", Effect::Nothing),
        "fetch" | "move" => ("FETCH", Effect::Nothing),
        "listen" | "unlisten" => ("LISTEN", Effect::Unknown),
        "call" => ("CALL", Effect::Unknown),
        "do" => ("DO", Effect::Unknown),
        "close" => ("CLOSE", Effect::Unknown),
        "load" => ("LOAD", Effect::Unknown),
        "execute" => ("EXECUTE", Effect::Unknown),
        "deallocate" => ("DEALLOCATE", Effect::Unknown),
        _ => session::read(words, first).unwrap_or((UNCLEAR, Effect::Unknown)),
    }
}

/// EXPLAIN, which runs its statement with ANALYZE only.
fn explain(words: Words<'_>) -> Effect {
    let mut at = 1;
    let mut analyze = false;
    if words.kind(1) == Kind::Open
        && !words.any(2, &["select", "with", "values", "table"])
        && words.kind(2) != Kind::Open
    {
        while !matches!(words.kind(at), Kind::Close | Kind::End) {
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
    if !analyze {
        return Effect::Nothing;
    }
    within(apart(words.from(at)).effect)
}

/// Combines the effects of several statements.
pub(crate) fn several(effects: Vec<Effect>) -> Effect {
    let plain =
        |effect: &Effect| matches!(effect, Effect::Nothing | Effect::Generates | Effect::Empty);
    if !effects.iter().all(plain) {
        return Effect::Several(effects.into());
    }
    if effects.contains(&Effect::Generates) {
        Effect::Generates
    } else {
        Effect::Nothing
    }
}
