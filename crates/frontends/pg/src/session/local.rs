//! Statements that a session answers by itself: Windrow's own settings, and `lastval()`.

use bytes::{BufMut, BytesMut};
use windrow_calls::Formats;
use windrow_core::{Fault, FaultClass};
use windrow_sql::Effect;

use crate::codec::answer;
use crate::statements::CachedStatement;

/// The settings that a session has.
const SETTINGS: [&str; 3] = ["join", "ack", "defer"];

/// An answer of the session itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The text was empty.
    Empty,
    /// A command without rows: its tag.
    Done(&'static str),
    /// One row of one text.
    Text(&'static str, &'static str),
    /// One row of one number: its column's name and the number.
    Number(&'static str, i64),
}

impl Reply {
    /// Says it: the row in this format, and CommandComplete. `described`: RowDescription first.
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

/// The RowDescription's body of a statement that a session answers.
pub(crate) fn fields(cached: &CachedStatement) -> Option<Box<[u8]>> {
    match cached.effect()? {
        Effect::ShowWindrow { name } => Some(answer::one_field(&format!("windrow.{name}"), false)),
        Effect::Lastval => Some(answer::one_field("lastval", true)),
        _ => None,
    }
}

/// The number of columns that a statement which a session answers has.
pub(crate) fn columns(cached: &CachedStatement) -> usize {
    fields(cached).map_or(0, |body| answer::columns(&body))
}

/// `SET windrow.name = value`. `join` is the setting, `default` its value after RESET.
pub(crate) fn set(
    name: &str,
    value: Option<&str>,
    join: &mut bool,
    default: bool,
) -> Result<Reply, Fault> {
    let tag = Reply::Done(if value.is_some() { "SET" } else { "RESET" });
    match name {
        "join" => {
            *join = value.map_or(Ok(default), on_or_off)?;
            Ok(tag)
        }
        "ack" | "defer" => Err(Fault::new(
            FaultClass::Unsupported,
            "0A000",
            format!("windrow.{name} is not available in this version"),
        )),
        _ => Err(unknown(name)),
    }
}

/// That a statement about Windrow's own settings can be answered.
///
/// # Errors
/// Why it cannot.
pub(crate) fn check(cached: &CachedStatement) -> Result<(), Fault> {
    match cached.effect() {
        Some(Effect::SetWindrow { name, value }) => {
            set(name, value.as_deref(), &mut false, false).map(drop)
        }
        Some(Effect::ShowWindrow { name }) => show(name, false).map(drop),
        _ => Ok(()),
    }
}

/// `SHOW windrow.name`.
pub(crate) fn show(name: &str, join: bool) -> Result<Reply, Fault> {
    match name {
        "join" => Ok(Reply::Text("windrow.join", if join { "on" } else { "off" })),
        "ack" => Ok(Reply::Text("windrow.ack", "commit")),
        "defer" => Ok(Reply::Text("windrow.defer", "off")),
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Fault {
    let text = format!("unrecognized configuration parameter \"windrow.{name}\"");
    let known: Vec<_> = SETTINGS.map(|name| format!("windrow.{name}")).into();
    Fault::new(FaultClass::Invalid, "42704", text)
        .with_hint(Some(format!("There are {}.", known.join(", "))))
}

/// As PostgreSQL reads a boolean setting: any unambiguous beginning of its words.
fn on_or_off(value: &str) -> Result<bool, Fault> {
    let value = value.to_ascii_lowercase();
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(&*value);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || value == "1" {
        Ok(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || value == "0" {
        Ok(false)
    } else {
        Err(Fault::invalid(
            "parameter \"windrow.join\" requires a Boolean value",
        ))
    }
}

/// True for a statement about Windrow's own settings: only the session itself can answer it.
pub(crate) fn is_windrow_setting(cached: &CachedStatement) -> bool {
    matches!(
        cached.effect(),
        Some(Effect::SetWindrow { .. } | Effect::ShowWindrow { .. })
    )
}

/// What PostgreSQL says where nothing was taken from a sequence.
pub(crate) fn no_lastval() -> Fault {
    Fault::new(
        FaultClass::Other,
        "55000",
        "lastval is not yet defined in this session",
    )
}

/// What is said of a question that cannot be answered truly.
pub(crate) fn cannot_tell() -> Fault {
    Fault::new(
        FaultClass::Unsupported,
        "0A000",
        "what lastval() and currval() say cannot be told in this statement: the value was taken on another server connection",
    )
    .with_hint(Some(
        "Use INSERT .. RETURNING, or SET windrow.join = off before the INSERT.",
    ))
}

/// What a transaction that has failed says to everything.
pub(crate) fn aborted() -> Fault {
    Fault::new(
        FaultClass::Other,
        "25P02",
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

/// What stands for a statement about Windrow's own settings that is prepared within a transaction
/// on a server.
pub(crate) fn substitute(cached: &CachedStatement, join: bool) -> Option<String> {
    match cached.effect()? {
        // It ends with the transaction.
        Effect::SetWindrow { .. } => Some("SET LOCAL windrow.join = 'on'".to_owned()),
        Effect::ShowWindrow { name } => {
            let value = if join { "on" } else { "off" };
            let name = name.replace('"', "\"\"");
            Some(format!(
                "SELECT '{value}'::pg_catalog.text AS \"windrow.{name}\""
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boolean_reads_as_on_the_server() {
        for on in ["on", "true", "t", "YES", "1", "tru"] {
            assert_eq!(on_or_off(on), Ok(true), "{on}");
        }
        for off in ["off", "of", "false", "f", "No", "0"] {
            assert_eq!(on_or_off(off), Ok(false), "{off}");
        }
        for bad in ["o", "", "onn", "2", "maybe"] {
            assert_eq!(on_or_off(bad).unwrap_err().code, "22023", "{bad:?}");
        }
    }

    #[test]
    fn settings_are_named_where_one_is_unknown() {
        let mut join = true;
        assert_eq!(
            set("join", Some("off"), &mut join, true),
            Ok(Reply::Done("SET"))
        );
        assert!(!join);
        assert_eq!(set("join", None, &mut join, true), Ok(Reply::Done("RESET")));
        assert!(join);
        let fault = show("joni", true).unwrap_err();
        assert_eq!(
            (&*fault.code, fault.hint().unwrap().contains("windrow.join")),
            ("42704", true)
        );
        assert_eq!(
            set("ack", Some("spool"), &mut join, true).unwrap_err().code,
            "0A000"
        );
    }
}
