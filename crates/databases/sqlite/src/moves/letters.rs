//! Writes rows to the dead letters.

use std::collections::HashMap;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use windrow_core::moves::{REJECTED, Rejected};
use windrow_core::{Fault, Name, Value, record};

use super::source::Source;
use crate::fault::Failure;
use crate::values::column::ColumnType;
use crate::values::read;

/// A row for the dead letters, owned by the writer's thread.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) row: usize,
    destination: Box<str>,
    code: Box<str>,
    message: Box<str>,
    constraint: Option<Box<str>>,
}

impl From<&Rejected<'_>> for Letter {
    fn from(rejected: &Rejected<'_>) -> Self {
        let fault = rejected.fault;
        Self {
            row: rejected.row,
            destination: rejected.destination.into(),
            code: fault.code.as_ref().into(),
            message: fault.message.clone(),
            constraint: fault.constraint().map(Box::from),
        }
    }
}

/// Writes dead letters. Their rows are still in the source. `numbers` are the rows' numbers, as an
/// array of JSON.
pub(super) fn write(
    connection: &Connection,
    source: &Source,
    letters: &[Letter],
    numbers: &str,
) -> Result<(), Failure> {
    let mut rows = rows(connection, source, numbers)?;
    let sql = format!(
        r#"INSERT INTO main.{REJECTED} (source, destination, "key", "row", code, message, "constraint") VALUES (?, ?, ?, ?, ?, ?, ?)"#
    );
    let mut insert = connection.prepare_cached(&sql)?;
    for letter in letters {
        let Some((key, row)) = rows.remove(&letter.row) else {
            let fault = Fault::internal("a picked row cannot be read any more");
            return Err(Failure::of_write(fault));
        };
        insert.execute(rusqlite::params![
            source.name.to_string(),
            letter.destination,
            key,
            row,
            letter.code,
            letter.message,
            letter.constraint
        ])?;
    }
    Ok(())
}

/// Returns keys and rows as JSON, by their places.
fn rows(
    connection: &Connection,
    source: &Source,
    numbers: &str,
) -> Result<HashMap<usize, (String, String)>, Failure> {
    let mut ask = connection.prepare_cached(&source.whole)?;
    let mut rows = ask.query([numbers])?;
    let mut found = HashMap::new();
    while let Some(row) = rows.next()? {
        let number = usize::try_from(row.get::<_, i64>(0)?).unwrap_or_default();
        let values =
            |from: usize, columns: &[(Name, ColumnType)]| -> rusqlite::Result<Vec<Value>> {
                let columns = columns.iter().enumerate();
                columns
                    .map(|(place, (_, of))| Ok(kept(row.get_ref(from + place)?, *of)))
                    .collect()
            };
        let key = values(1, &source.key)?;
        let all = values(1 + source.key.len(), &source.all)?;
        let object = record::object(source.all.iter().map(|(name, _)| name).zip(&all));
        found.insert(number.wrapping_sub(1), (record::array(&key), object));
    }
    Ok(found)
}

/// Returns a value as a dead letter keeps it.
fn kept(stored: ValueRef<'_>, of: ColumnType) -> Value {
    match stored {
        ValueRef::Text(bytes) if str::from_utf8(bytes).is_err() => record::unreadable(bytes),
        stored => read::value(stored, of),
    }
}
