//! DDL that does not run what it names.

use crate::words::Words;

/// Returns true if the first statement of a text is DDL that does not run what it names:
/// expressions are stored, not evaluated. Adding an index or a constraint evaluates its expressions
/// for the existing rows, and the bounds of a partition are evaluated too.
pub(crate) fn only_defines(words: Words<'_>) -> bool {
    let words = words.first_statement();
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

/// Returns true for `CREATE TABLE` whose text evaluates something at once: a query, or the bounds
/// of a partition.
fn is_filled(words: Words<'_>) -> bool {
    (0..words.len()).any(|at| {
        words.is(at, "partition") && words.is(at + 1, "of")
            || words.is(at, "as") && !words.is(at + 1, "identity")
    })
}
