//! Runs several statements in one round trip.

use postgres_protocol::message::frontend;
use postgres_protocol::{IsNull, Oid};
use windrow_core::Fault;
use windrow_pgwire::wire::{Answer, DataRow, ServerError, Wire};

use crate::catalog::column::oid;

/// A statement with its parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    sql: String,
    parameters: Vec<(Oid, String)>,
}

impl Ask {
    /// Makes a statement without parameters.
    pub(crate) fn of(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            parameters: Vec::new(),
        }
    }

    /// Adds a text as a parameter.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.parameters.push((oid::TEXT, text.to_owned()));
        self
    }

    /// Adds a text whose type the server infers.
    pub(crate) fn untyped(mut self, text: String) -> Self {
        self.parameters.push((0, text));
        self
    }

    /// Adds an array of texts; `None` is NULL.
    pub(crate) fn texts<'a>(mut self, texts: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut literal = String::from("{");
        for (place, text) in texts.into_iter().enumerate() {
            literal.push_str(if place > 0 { "," } else { "" });
            push_element(&mut literal, text);
        }
        literal.push('}');
        self.parameters.push((oid::TEXT_ARRAY, literal));
        self
    }

    fn append(&self, wire: &mut Wire) -> bool {
        let out = wire.out();
        let types = self.parameters.iter().map(|(oid, _)| *oid);
        let values = self.parameters.iter().map(|(_, value)| value);
        frontend::parse("", &self.sql, types, out).is_ok()
            && frontend::bind(
                "",
                "",
                [],
                values,
                |value, out| {
                    out.extend_from_slice(value.as_bytes());
                    Ok(IsNull::No)
                },
                [],
                out,
            )
            .is_ok()
            && frontend::execute("", 0, out).is_ok()
    }
}

/// Appends an element as in "Array Input and Output Syntax": in quotes, with `"` and `\` escaped.
fn push_element(literal: &mut String, text: Option<&str>) {
    let Some(text) = text else {
        return literal.push_str("NULL");
    };
    literal.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal.push('"');
}

/// A statement that failed, by its place among those that were sent.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) at: usize,
    pub(crate) fault: Fault,
}

impl From<Failed> for Fault {
    fn from(failed: Failed) -> Self {
        failed.fault
    }
}

/// The receiver of the rows of the statements, each with its statement's place.
pub(crate) type OnRow<'a> = &'a mut (dyn FnMut(usize, DataRow<'_>) + Send);

/// Sends statements under one Sync and takes their rows. Statements after one that fails are not
/// executed.
///
/// `commits`: the last statement ends a transaction, so that a connection lost on the way leaves an
/// unknown outcome.
pub(crate) async fn talk(
    wire: &mut Wire,
    asks: &[Ask],
    commits: bool,
    on_row: OnRow<'_>,
) -> Result<(), Failed> {
    let before = wire.out().len();
    for (at, ask) in asks.iter().enumerate() {
        if !ask.append(wire) {
            wire.out().truncate(before);
            let fault = Fault::new(
                windrow_core::FaultClass::Value,
                "22021",
                "a statement cannot hold a zero byte or more than 1 GiB",
            );
            return Err(Failed { at, fault });
        }
    }
    frontend::sync(wire.out());
    let mut at = 0;
    let mut failed: Option<(usize, ServerError)> = None;
    let ended = wire
        .exchange(1, &mut |answer| match answer {
            Answer::DataRow(row) => on_row(at, row),
            Answer::CommandComplete(_) | Answer::EmptyQuery => at += 1,
            Answer::Error(error) => failed = Some((at, error)),
            _ => {}
        })
        .await;
    match (ended, failed) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some((at, error))) => Err(Failed {
            at,
            fault: error.into(),
        }),
        (Err(broken), _) => {
            let fault = match commits {
                true => broken.unknown(),
                false => broken.unavailable(),
            };
            Err(Failed { at, fault })
        }
    }
}

/// Returns the first column of the first row.
pub(crate) async fn word(wire: &mut Wire, ask: Ask) -> Result<Option<String>, Fault> {
    let mut word = None;
    talk(wire, &[ask], false, &mut |_, row| {
        word.get_or_insert(text(&row, 0));
    })
    .await?;
    Ok(word.flatten())
}

/// Returns a column as text; `None` for NULL.
pub(crate) fn text(row: &DataRow<'_>, place: usize) -> Option<String> {
    row.get(place)
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// Returns a column that holds a number.
pub(crate) fn number(row: &DataRow<'_>, place: usize) -> u64 {
    text(row, place)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_cannot_leave_their_array() {
        let ask = Ask::of("x").texts([Some("a\"b\\,}"), None, Some("NULL"), Some("")]);
        assert_eq!(ask.parameters[0].1, r#"{"a\"b\\,}",NULL,"NULL",""}"#);
    }
}
