//! Statements that CockroachDB refuses and PostgreSQL does not, with CockroachDB's errors.
//!
//! From <https://www.cockroachlabs.com/docs/stable/postgresql-compatibility>, the reference of its functions and of its
//! grammar, and the issues that are named.

/// The type numbers of arrays of JSON and JSONB.
const JSON_ARRAYS: [u32; 2] = [199, 3807];

/// A refusal: SQLSTATE and message.
pub(super) type Refusal = (&'static str, &'static str);

/// The error of a transaction whose result is unknown.
pub(super) const AMBIGUOUS: Refusal = (
    "40003",
    "result is ambiguous: error=rpc error: code = Unavailable desc = node unavailable; try another peer [exhausted] (last error: unknown)",
);

/// Words of a statement, in lower case, that make CockroachDB refuse it.
const WORDS: [(&str, Refusal); 8] = [
    (
        "pg_partition_tree(",
        ("42883", "unknown function: pg_partition_tree()"),
    ),
    (
        "pg_listening_channels(",
        ("42883", "unknown function: pg_listening_channels()"),
    ),
    (".xmin", ("42703", "column \"x.xmin\" does not exist")),
    // cockroachdb/cockroach#68201
    (
        "overriding system value",
        ("42601", "at or near \"overriding\": syntax error"),
    ),
    (
        "lock table ",
        ("42601", "at or near \"lock\": syntax error"),
    ),
    // cockroachdb/cockroach#41522
    ("listen ", ("42601", "at or near \"listen\": syntax error")),
    // cockroachdb/cockroach#42540
    (
        "join lateral (\n  with recursive",
        ("0A000", "unimplemented: CTEs may not be correlated"),
    ),
    (
        "jsonb[]",
        ("0A000", "unimplemented: arrays of jsonb not allowed"),
    ),
];

/// Words that count only where a statement begins with them.
const FIRST_WORDS: [&str; 2] = ["lock table ", "listen "];

/// Why a statement with these types of parameters is refused, if it is.
pub(super) fn refusal(sql: &str, types: &[u32]) -> Option<Refusal> {
    if types.iter().any(|oid| JSON_ARRAYS.contains(oid)) {
        // cockroachdb/cockroach#59427
        return Some(("0A000", "unimplemented: arrays of jsonb not allowed"));
    }
    let sql = sql.trim_start().to_ascii_lowercase();
    let found = WORDS
        .iter()
        .find(|(words, _)| match FIRST_WORDS.contains(words) {
            true => sql.starts_with(words),
            false => sql.contains(words),
        });
    found.map(|(_, refusal)| *refusal)
}

/// Text before the code and the message in the error that PostgreSQL is made to give.
pub(super) const MARK: &str = "windrow refuses ";

/// Returns a statement that PostgreSQL fails to parse, whose error says code and message.
pub(super) fn failing((code, message): Refusal) -> String {
    format!(
        "select '{MARK}{code}: {}'::int",
        message.replace('\'', "''")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_documented_is_refused() {
        for (sql, code) in [
            ("select x.xmin from pg_class x", Some("42703")),
            ("  LOCK TABLE t IN ACCESS EXCLUSIVE MODE", Some("42601")),
            ("select 'lock table t'", None),
            ("insert into t values ($1)", None),
        ] {
            assert_eq!(refusal(sql, &[]).map(|(code, _)| code), code, "{sql}");
        }
        assert!(refusal("select unnest($1)", &[3807]).is_some());
    }
}
