//! Finding out what a session has left on its server connection.

use postgres_protocol::message::frontend;
use windrow_pgwire::wire::{Answer, Broken, ServerError, Wire};

use super::state::literal;
use crate::client::Settings;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// What is left, if something is.
    pub(super) left: Option<&'static str>,
    /// What `lastval()` says, where it was asked.
    pub(super) lastval: Option<i64>,
}

/// The answer to one statement.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The first column of the first row.
    pub(super) value: Option<String>,
    pub(super) error: Option<ServerError>,
    /// `I`, `T` or `E`.
    status: u8,
}

/// It fails with 55000 where no value was taken from a sequence.
const LASTVAL: &str = "SELECT pg_catalog.lastval()";

/// What can be left behind, in the order of its questions.
const LEFT: [&str; 7] = [
    "temporary objects",
    "LISTEN",
    "PREPARE",
    "a cursor WITH HOLD",
    "an advisory lock",
    "another role",
    "session settings",
];

/// The last value that was taken from a sequence; the next session will not see it.
pub(super) async fn generated(wire: &mut Wire) -> Result<Found, Broken> {
    let told = ask(wire, &[LASTVAL, "DISCARD SEQUENCES"]).await?;
    Ok(Found {
        left: None,
        lastval: lastval(&told),
    })
}

/// Takes back all that can be; gives what `lastval()` said before. `None`: it cannot be.
pub(super) async fn reset(wire: &mut Wire) -> Result<Option<Option<i64>>, Broken> {
    let told = ask(wire, &[LASTVAL, "DISCARD ALL"]).await?;
    let done = told.last().is_some_and(|told| told.error.is_none());
    Ok(done.then(|| lastval(&told)))
}

/// All that can be looked at. `role`: as which the connection was opened.
pub(super) async fn all(wire: &mut Wire, expected: &Settings, role: &str) -> Result<Found, Broken> {
    let question = question(expected, role);
    // What is not known may have taken values from sequences, too.
    let mut told = ask(wire, &[question.as_str(), LASTVAL]).await?;
    let lastval = lastval(told.get(1..).unwrap_or_default());
    let left = match told.first_mut() {
        Some(told) if told.status != b'I' => Some("an open transaction"),
        Some(Told {
            error: Some(error), ..
        }) => {
            tracing::debug!(%error, "a session's state cannot be read");
            Some("state that cannot be read")
        }
        Some(Told { value, .. }) => what(value.as_deref()),
        None => None,
    };
    if left.is_none() && !expected.set.is_empty() && differ(wire, expected).await? {
        let left = Some("session settings");
        return Ok(Found { left, lastval });
    }
    Ok(Found { left, lastval })
}

/// Whether settings that the session has made are no longer as it made them: a function or a script may have changed one.
/// Their statements, run again in a transaction that is rolled back, tell how they were.
async fn differ(wire: &mut Wire, expected: &Settings) -> Result<bool, Broken> {
    let names = expected.set.iter().map(|(name, _)| literal(name));
    let values = names.map(|name| format!("pg_catalog.current_setting({name}, true)"));
    let values = values.collect::<Vec<_>>().join(", ");
    let question = format!("SELECT ROW({values})::pg_catalog.text");
    let mut statements = vec![question.as_str(), "BEGIN"];
    statements.extend(expected.set.iter().map(|(_, statement)| &**statement));
    statements.extend([question.as_str(), "ROLLBACK"]);
    let told = ask(wire, &statements).await?;
    let value = |at: Option<usize>| told.get(at?).and_then(|told| told.value.as_deref());
    let failed = told.iter().any(|told| told.error.is_some());
    Ok(failed || value(Some(0)) != value(told.len().checked_sub(2)))
}

fn what(value: Option<&str>) -> Option<&'static str> {
    let number: Option<usize> = value.and_then(|value| value.parse().ok());
    match number {
        Some(0) => None,
        Some(number) => LEFT.get(number - 1).copied().or(Some("something unknown")),
        None => Some("state that cannot be read"),
    }
}

fn lastval(told: &[Told]) -> Option<i64> {
    told.first()?.value.as_deref()?.parse().ok()
}

/// Gives the number of the first kind of thing that is left, or 0.
fn question(expected: &Settings, role: &str) -> String {
    let is_set = |name: &str| expected.set.iter().any(|(set, _)| &**set == name);
    let acts_for = match (is_set("session_authorization"), is_set("role")) {
        (true, _) => "false".to_owned(),
        (false, true) => format!("session_user <> {}", literal(role)),
        (false, false) => format!(
            "session_user <> {} OR current_user <> session_user",
            literal(role)
        ),
    };
    let mut known = literal("application_name");
    for (name, _) in expected.set.iter() {
        known.push_str(", ");
        known.push_str(&literal(name));
    }
    format!(
        "SELECT CASE \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_depend WHERE refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass \
         AND refobjid = pg_catalog.pg_my_temp_schema()) THEN 1 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_listening_channels()) THEN 2 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql) THEN 3 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable) THEN 4 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid()) THEN 5 \
         WHEN {acts_for} THEN 6 \
         WHEN EXISTS (SELECT FROM pg_catalog.pg_settings WHERE source = 'session' AND pg_catalog.lower(name) NOT IN ({known})) THEN 7 \
         ELSE 0 END"
    )
}

/// Sends statements at once, each as a simple query of its own, and collects what they are told.
pub(super) async fn ask(
    wire: &mut Wire,
    statements: &[impl AsRef<str>],
) -> Result<Vec<Told>, Broken> {
    let mut told: Vec<Told> = Vec::with_capacity(statements.len());
    for statement in statements {
        let statement = statement.as_ref();
        // A zero byte cannot come this far: the text was a client's message, which ends at one.
        if frontend::query(statement, wire.out()).is_err() {
            frontend::sync(wire.out());
        }
    }
    let mut now = Told::default();
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
            told.push(std::mem::take(&mut now));
        }
        _ => {}
    })
    .await?;
    Ok(told)
}
