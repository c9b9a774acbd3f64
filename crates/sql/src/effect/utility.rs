//! The effects of COPY and DDL.

use super::query::{query, within};
use crate::lex::Kind;
use crate::reading::Effect;
use crate::word;
use crate::words::Words;

/// Returns the effect of COPY.
pub(super) fn copy(words: Words<'_>) -> Effect {
    if words.kind(1) == Kind::Open {
        return query(words.from(1));
    }
    // The parenthesis behind the table holds columns, those behind WITH options: only WHERE calls
    // functions.
    let reads = (0..words.len()).any(|at| words.is(at, "from"));
    match (0..words.len()).find(|at| words.is(*at, "where")) {
        Some(at) if query(words.from(at)) != Effect::Nothing => Effect::Unknown,
        _ if reads => Effect::Generates,
        _ => Effect::Nothing,
    }
}

/// DDL that may be about temporary objects.
pub(super) fn unless_temporary(words: Words<'_>) -> Effect {
    let temporary = (0..words.len())
        .any(|at| words.any(at, &["temp", "temporary"]) || words.names_a_temporary_schema(at));
    if temporary {
        Effect::Unknown
    } else {
        Effect::Nothing
    }
}

impl Words<'_> {
    /// A statement that writes down, changes or takes away what others run, and runs nothing of
    /// what it names itself.
    pub(crate) fn only_defines(self) -> bool {
        let end = (0..self.len()).find(|at| self.kind(*at) == Kind::Semicolon);
        only_defines(self.between(0, end.unwrap_or(self.len())))
    }
}

/// Of DDL, those that run nothing of what they name: expressions are written down, not evaluated.
/// Not so an index or a constraint that is added, which look at the rows that are there, and the
/// bounds of a partition.
fn only_defines(words: Words<'_>) -> bool {
    const CREATED: &[&str] = &[
        "aggregate",
        "cast",
        "constraint",
        "domain",
        "event",
        "function",
        "operator",
        "policy",
        "procedure",
        "role",
        "rule",
        "sequence",
        "trigger",
        "type",
        "user",
        "view",
    ];
    const ALTERED: &[&str] = &[
        "function",
        "policy",
        "procedure",
        "role",
        "routine",
        "sequence",
        "trigger",
        "user",
    ];
    const STORED: &[&str] = &["table", "temp", "temporary", "unlogged"];
    if words.any(0, &["comment", "drop", "grant", "revoke"]) {
        return true;
    }
    let replaced = words.is(1, "or") && words.is(2, "replace");
    let kind = if replaced { 3 } else { 1 };
    (words.is(0, "create") && words.any(kind, CREATED))
        || (words.is(0, "alter") && words.any(1, ALTERED))
        || (words.is(0, "create") && words.any(1, STORED) && !is_filled(words))
}

/// `CREATE TABLE` whose text evaluates something at once: a query, or the bounds of a partition.
fn is_filled(words: Words<'_>) -> bool {
    (0..words.len()).any(|at| {
        words.is(at, "partition") && words.is(at + 1, "of")
            || words.is(at, "as") && !words.is(at + 1, "identity")
    })
}

/// Returns the effect of CREATE.
pub(super) fn create(words: Words<'_>) -> Effect {
    const KINDS: &[&str] = &[
        "aggregate",
        "cast",
        "collation",
        "constraint",
        "database",
        "domain",
        "event",
        "foreign",
        "function",
        "group",
        "index",
        "materialized",
        "operator",
        "or",
        "policy",
        "procedure",
        "publication",
        "recursive",
        "role",
        "rule",
        "schema",
        "sequence",
        "server",
        "statistics",
        "table",
        "tablespace",
        "text",
        "trigger",
        "type",
        "unique",
        "unlogged",
        "user",
        "view",
    ];
    if !word::listed(KINDS, words.slice(1)) {
        return Effect::Unknown;
    }
    let table = words.any(1, &["table", "unlogged", "materialized", "schema"]);
    let filled = words.any(1, &["table", "unlogged", "materialized", "schema"])
        && (0..words.len()).any(|at| words.is(at, "as") && !words.is(at + 1, "identity"));
    if table && filled {
        // The query runs at once: what it calls counts. A list of columns behind the name reads
        // like a call.
        let body = (0..words.len())
            .find(|at| words.is(*at, "as"))
            .unwrap_or_default();
        return match (unless_temporary(words), within(query(words.from(body + 1)))) {
            (Effect::Nothing, effect) if !words.is(body + 1, "execute") => effect,
            _ => Effect::Unknown,
        };
    }
    unless_temporary(words)
}
