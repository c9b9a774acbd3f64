//! Statements that a session answers by itself: Windrow's own settings, and `lastval()`.

use bytes::{BufMut, BytesMut};
use windrow_core::{Fault, FaultClass, Formats};
use windrow_sql::Effect;

use crate::codec::answer;
use crate::own::{Allowed, KEY, Own};
use crate::statements::CachedStatement;

/// An answer of the session itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The text was empty.
    Empty,
    /// A command without rows: its tag.
    Done(&'static str),
    /// One row of one text.
    Text(&'static str, Box<str>),
    /// One row of one number: its column's name and the number.
    Number(&'static str, i64),
}

impl Reply {
    /// Writes the answer: the row in this format, and CommandComplete. `described`: RowDescription
    /// first.
    pub(crate) fn say(&self, out: &mut BytesMut, results: &Formats, described: bool) {
        if described && let Some(fields) = self.fields() {
            answer::fields(out, Some(&fields), results);
        }
        match self {
            Self::Empty => out.put_slice(answer::EMPTY_QUERY),
            Self::Done(tag) => answer::complete(out, tag),
            Self::Text(_, text) => {
                answer::one_value(out, text.as_bytes());
                answer::complete(out, "SHOW");
            }
            Self::Number(_, number) => {
                answer::number(out, *number, results.is_binary(0));
            }
        }
    }

    fn fields(&self) -> Option<Box<[u8]>> {
        match self {
            Self::Empty | Self::Done(_) => None,
            Self::Text(name, _) => Some(answer::one_field(name, false)),
            Self::Number(name, _) => Some(answer::one_field(name, true)),
        }
    }
}

/// Returns the RowDescription's body of a statement that the session answers.
pub(crate) fn fields(cached: &CachedStatement) -> Option<Box<[u8]>> {
    match cached.effect()? {
        Effect::ShowWindrow { name } => Some(answer::one_field(&format!("windrow.{name}"), false)),
        Effect::Lastval => Some(answer::one_field("lastval", true)),
        _ => None,
    }
}

/// Returns the number of columns of a statement that the session answers.
pub(crate) fn columns(cached: &CachedStatement) -> usize {
    fields(cached).map_or(0, |body| answer::columns(&body))
}

/// Checks that a statement about Windrow's own settings can be answered while the session has a
/// server connection of its own.
///
/// # Errors
/// The reason why it cannot.
pub(crate) fn check(
    cached: &CachedStatement,
    own: &Own,
    allowed: Allowed<'_>,
) -> Result<(), Fault> {
    match cached.effect() {
        Some(Effect::SetWindrow { name, value }) if &**name == KEY && value.is_some() => {
            let text = "windrow.idempotency_key cannot be set within a transaction, or while the session keeps a server connection";
            let hint = "A write with a key is a transaction by itself.";
            Err(Fault::new(FaultClass::Unsupported, "0A000", text).with_hint(Some(hint)))
        }
        Some(Effect::SetWindrow { name, value }) => {
            let mut tried = own.clone();
            tried.set(name, value.as_deref(), own, allowed)
        }
        Some(Effect::ShowWindrow { name }) => own.show(name).map(drop),
        _ => Ok(()),
    }
}

/// Returns true for a statement about Windrow's own settings: only the session itself can answer
/// it.
pub(crate) fn is_windrow_setting(cached: &CachedStatement) -> bool {
    matches!(
        cached.effect(),
        Some(Effect::SetWindrow { .. } | Effect::ShowWindrow { .. })
    )
}

/// Returns PostgreSQL's error if no value was taken from a sequence.
pub(crate) fn no_lastval() -> Fault {
    Fault::new(
        FaultClass::Other,
        "55000",
        "lastval is not yet defined in this session",
    )
}

/// Returns the error of a question for a value that is not known here.
pub(crate) fn cannot_tell() -> Fault {
    Fault::new(
        FaultClass::Unsupported,
        "0A000",
        "the values of lastval() and currval() are not known in this statement: they were taken on another server connection",
    )
    .with_hint(Some(
        "Use INSERT .. RETURNING, SET windrow.join = off before the INSERT, or GRANT TEMPORARY ON DATABASE to the role.",
    ))
}

/// Returns the error of every statement in a failed transaction.
pub(crate) fn aborted() -> Fault {
    Fault::new(
        FaultClass::Other,
        "25P02",
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

/// Returns the error of a question for a value that is taken only when the spool is applied.
pub(crate) fn in_the_spool() -> Fault {
    Fault::new(
        FaultClass::Unsupported,
        "0A000",
        "the values of lastval() and currval() are not known: a row of this session takes its value when the spool is applied",
    )
    .with_hint(Some(
        "Use INSERT .. RETURNING, or SET windrow.ack = commit before the INSERT.",
    ))
}

/// Returns the text in place of a statement about Windrow's own settings that is prepared within a
/// transaction on a server.
pub(crate) fn substitute(cached: &CachedStatement, own: &Own) -> Option<String> {
    match cached.effect()? {
        // It ends with the transaction.
        Effect::SetWindrow { .. } => Some("SET LOCAL windrow.own = 'on'".to_owned()),
        Effect::ShowWindrow { name } => {
            let value = own.show(name).map_or("", |(_, value)| value);
            let value = value.replace('\\', "\\\\").replace('\'', "''");
            let name = name.replace('"', "\"\"");
            Some(format!(
                "SELECT E'{value}'::pg_catalog.text AS \"windrow.{name}\""
            ))
        }
        _ => None,
    }
}
