//! Finds the state that a session has left on its server connection.

use postgres_protocol::message::frontend;
use windrow_core::Generated;
use windrow_pgwire::wire::{Answer, Broken, ServerError, Wire};

use super::state::literal;
use crate::client::Settings;

/// The findings about a connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// The kind of state that is left, if any.
    pub(super) left: Option<&'static str>,
    /// The values taken from sequences, if they were asked for.
    pub(super) drawn: Drawn,
}

/// The values taken from sequences on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// The value of `lastval()`.
    pub(crate) last: Option<i64>,
    /// The values of `currval()` of the requested sequences.
    pub(crate) current: Vec<Generated>,
}

/// The answer to one statement.
#[derive(Debug, Default)]
pub(super) struct StatementReply {
    /// The first column of the first row.
    pub(super) value: Option<String>,
    pub(super) error: Option<ServerError>,
    /// `I`, `T` or `E`.
    status: u8,
}

/// The question for `lastval()`. It fails with 55000 if no value was taken from a sequence.
const LASTVAL: &str = "SELECT pg_catalog.lastval()";

/// The server's own operator: operators of other schemas, which a session may search first, must
/// not answer questions about it.
const IS: &str = "OPERATOR(pg_catalog.=)";

/// The kinds of state that can be left behind, in the order of their questions.
const LEFT: [&str; 7] = [
    "temporary objects",
    "LISTEN",
    "PREPARE",
    "a cursor WITH HOLD",
    "an advisory lock",
    "another role",
    "session settings",
];

/// Returns the values taken from sequences, and removes them for the next session. `sequences`:
/// those to ask for, by name or number.
pub(super) async fn generated(wire: &mut Wire, sequences: &[String]) -> Result<Findings, Broken> {
    let mut questions = questions(sequences);
    questions.push("DISCARD SEQUENCES".to_owned());
    let replies = ask(wire, &questions).await?;
    Ok(Findings {
        left: None,
        drawn: drawn(&replies),
    })
}

/// A function that tells whether a value was taken on this connection, from the sequence of a
/// number or from any (0). Without it, asking is an error if none was taken. The function stays on
/// the connection.
pub(crate) const DRAWN: &str = "pg_temp.windrow_drawn";

/// SQL for its number; NULL if it does not exist.
const DRAWN_NUMBER: &str = "pg_catalog.to_regprocedure('pg_temp.windrow_drawn(oid)')";

const MAKE_DRAWN: &str = "CREATE FUNCTION pg_temp.windrow_drawn(sequence pg_catalog.oid) \
     RETURNS pg_catalog.bool LANGUAGE plpgsql AS $$ BEGIN \
     IF sequence OPERATOR(pg_catalog.=) 0 THEN PERFORM pg_catalog.lastval(); \
     ELSE PERFORM pg_catalog.currval(sequence::pg_catalog.regclass); END IF; \
     RETURN true; EXCEPTION WHEN OTHERS THEN RETURN false; END $$";

/// Creates [`DRAWN`] if it is missing. `in_transaction`: true if a transaction is open, which must
/// not fail.
pub(super) async fn watch(wire: &mut Wire, in_transaction: bool) -> Result<bool, Broken> {
    let is_here = format!("SELECT {DRAWN_NUMBER} IS NOT NULL");
    let first: &[&str] = match in_transaction {
        true => &["SAVEPOINT windrow_asks", &is_here],
        false => &[&is_here],
    };
    let replies = ask(wire, first).await?;
    let here = replies.last().and_then(|reply| reply.value.as_deref());
    let mut can = here == Some("t");
    if !can {
        let replies = ask(wire, &[MAKE_DRAWN]).await?;
        can = replies.first().is_some_and(|reply| reply.error.is_none());
    }
    if in_transaction {
        let back: &[&str] = match can {
            true => &["RELEASE windrow_asks"],
            false => &["ROLLBACK TO windrow_asks", "RELEASE windrow_asks"],
        };
        ask(wire, back).await?;
    }
    Ok(can)
}

/// Returns true if the connection's default isolation level is READ COMMITTED.
pub(super) async fn reads_committed(wire: &mut Wire) -> Result<bool, Broken> {
    let question = "SELECT pg_catalog.current_setting('default_transaction_isolation')";
    let replies = ask(wire, &[question]).await?;
    let isolation = replies.first().and_then(|reply| reply.value.as_deref());
    Ok(matches!(
        isolation,
        Some("read committed" | "read uncommitted")
    ))
}

/// Returns the questions: `lastval()` first, then for each sequence its number and `currval()`.
fn questions(sequences: &[String]) -> Vec<String> {
    let of = |sequence: &String| {
        let sequence = literal(sequence);
        format!(
            "SELECT pg_catalog.concat({sequence}::pg_catalog.regclass::pg_catalog.oid, ' ', \
             pg_catalog.currval({sequence}))"
        )
    };
    let last = std::iter::once(LASTVAL.to_owned());
    last.chain(sequences.iter().map(of)).collect()
}

/// Resets everything that can be reset; returns the values taken from sequences before. `None` if
/// it cannot be reset.
pub(super) async fn reset(wire: &mut Wire, sequences: &[String]) -> Result<Option<Drawn>, Broken> {
    let mut questions = questions(sequences);
    questions.push("DISCARD ALL".to_owned());
    let replies = ask(wire, &questions).await?;
    let done = replies.last().is_some_and(|reply| reply.error.is_none());
    Ok(done.then(|| drawn(&replies)))
}

/// Finds all kinds of state. `role`: the role of the connection.
pub(super) async fn all(
    wire: &mut Wire,
    expected: &Settings,
    role: &str,
    sequences: &[String],
) -> Result<Findings, Broken> {
    // Unknown statements may have taken values from sequences, too.
    let mut statements = vec![question(expected, role)];
    statements.extend(questions(sequences));
    let mut replies = ask(wire, &statements).await?;
    let drawn = drawn(replies.get(1..).unwrap_or_default());
    let left = match replies.first_mut() {
        Some(reply) if reply.status != b'I' => Some("an open transaction"),
        Some(StatementReply {
            error: Some(error), ..
        }) => {
            tracing::debug!(%error, "a session's state cannot be read");
            Some("state that cannot be read")
        }
        Some(StatementReply { value, .. }) => what(value.as_deref()),
        None => None,
    };
    if left.is_none() && !expected.set.is_empty() && differ(wire, expected).await? {
        let left = Some("session settings");
        return Ok(Findings { left, drawn });
    }
    Ok(Findings { left, drawn })
}

/// Returns true if settings of the session have changed otherwise than by its own SETs, in a
/// function or a script. Compares by running the SETs again in a transaction that is rolled back.
async fn differ(wire: &mut Wire, expected: &Settings) -> Result<bool, Broken> {
    let names = expected.set.iter().map(|(name, _)| literal(name));
    let values = names.map(|name| format!("pg_catalog.current_setting({name}, true)"));
    let values = values.collect::<Vec<_>>().join(", ");
    let question = format!("SELECT ROW({values})::pg_catalog.text");
    let mut statements = vec![question.as_str(), "BEGIN"];
    statements.extend(expected.set.iter().map(|(_, statement)| &**statement));
    statements.extend([question.as_str(), "ROLLBACK"]);
    let replies = ask(wire, &statements).await?;
    let value = |at: Option<usize>| replies.get(at?).and_then(|reply| reply.value.as_deref());
    let failed = replies.iter().any(|reply| reply.error.is_some());
    Ok(failed || value(Some(0)) != value(replies.len().checked_sub(2)))
}

fn what(value: Option<&str>) -> Option<&'static str> {
    let number: Option<usize> = value.and_then(|value| value.parse().ok());
    match number {
        Some(0) => None,
        Some(number) => LEFT.get(number - 1).copied().or(Some("something unknown")),
        None => Some("state that cannot be read"),
    }
}

/// Reads the answers to [`questions`].
fn drawn(replies: &[StatementReply]) -> Drawn {
    let mut values = replies.iter().map(|reply| reply.value.as_deref());
    let last = values.next().flatten();
    let generated = |value: &str| {
        let (sequence, value) = value.split_once(' ')?;
        Some(Generated {
            sequence: sequence.parse().ok()?,
            value: value.parse().ok()?,
        })
    };
    Drawn {
        last: last.and_then(|last| last.parse().ok()),
        current: values.flatten().filter_map(generated).collect(),
    }
}

/// Returns the SQL for the number of the first kind of state that is left, or 0.
fn question(expected: &Settings, role: &str) -> String {
    let is_set = |name: &str| expected.set.iter().any(|(set, _)| &**set == name);
    let came_as = format!("session_user OPERATOR(pg_catalog.<>) {}", literal(role));
    let acts_for = match (is_set("session_authorization"), is_set("role")) {
        (true, _) => "false".to_owned(),
        (false, true) => came_as,
        (false, false) => {
            format!("{came_as} OR current_user OPERATOR(pg_catalog.<>) session_user")
        }
    };
    let mut known = literal("application_name");
    for (name, _) in expected.set.iter() {
        known.push_str(", ");
        known.push_str(&literal(name));
    }
    format!(
        "SELECT CASE \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_depend \
         WHERE refclassid {IS} 'pg_catalog.pg_namespace'::pg_catalog.regclass \
         AND refobjid {IS} pg_catalog.pg_my_temp_schema() AND (objid {IS} {DRAWN_NUMBER}::pg_catalog.oid) IS NOT TRUE) THEN 1 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_listening_channels()) THEN 2 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql) THEN 3 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable) THEN 4 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype {IS} 'advisory' AND pid {IS} pg_catalog.pg_backend_pid()) THEN 5 \
         WHEN {acts_for} THEN 6 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_settings WHERE source {IS} 'session' \
         AND (pg_catalog.lower(name) {IS} ANY (ARRAY[{known}]::pg_catalog.text[])) IS NOT TRUE) THEN 7 \
         ELSE 0 END"
    )
}

/// Sends statements at once, each as a simple query, and collects their replies.
pub(super) async fn ask(
    wire: &mut Wire,
    statements: &[impl AsRef<str>],
) -> Result<Vec<StatementReply>, Broken> {
    let mut replies: Vec<StatementReply> = Vec::with_capacity(statements.len());
    for statement in statements {
        let statement = statement.as_ref();
        // Impossible: the text was a client's message, which ends at a zero byte.
        if frontend::query(statement, wire.out()).is_err() {
            frontend::sync(wire.out());
        }
    }
    let mut now = StatementReply::default();
    wire.exchange(statements.len(), &mut |answer| match answer {
        Answer::DataRow(row) => {
            let first = row
                .get(0)
                .map(|text| String::from_utf8_lossy(text).into_owned());
            now.value = now.value.take().or(first);
        }
        Answer::Error(error) => now.error = Some(error),
        Answer::Ready(status) => {
            now.status = status;
            replies.push(std::mem::take(&mut now));
        }
        _ => {}
    })
    .await?;
    Ok(replies)
}
