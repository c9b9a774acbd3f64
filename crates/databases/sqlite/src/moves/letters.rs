//! Dead letters and noted batches: Windrow's own tables beside the source.

use std::collections::HashMap;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use windrow_core::moves::{BATCHES, Moved, REJECTED, Rejected};
use windrow_core::{Fault, Name, Value, record};

use super::source::Source;
use crate::fault::Failure;
use crate::values::column::ColumnType;
use crate::values::read;

/// A row that goes to the dead letters, as the writer's thread owns it.
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

/// Gives the table of markers an index by batches.
pub(super) fn index_markers(connection: &Connection) -> Result<(), Failure> {
    let (table, batch) = (Moved::TABLE, Moved::BATCH);
    let relocation = Moved::MOVE;
    connection.execute_batch(&format!(
        r#"CREATE INDEX IF NOT EXISTS main.windrow_moved_batch ON {table} ("{relocation}", "{batch}")"#
    ))?;
    Ok(())
}

/// Returns true if there are markers of a move with other tags than this one.
pub(super) fn has_strange(
    connection: &Connection,
    relocation: &str,
    tag: &str,
) -> Result<bool, Failure> {
    let (table, of, key) = (Moved::TABLE, Moved::MOVE, Moved::KEY);
    let sql = format!(
        r#"SELECT EXISTS (SELECT 1 FROM main.{table} WHERE "{of}" = ?1 AND substr("{key}", 1, {}) <> ?2)"#,
        Moved::TAG_BYTES
    );
    Ok(connection.query_row(&sql, [relocation, tag], |row| row.get(0))?)
}

/// Writes dead letters; their rows are still in the source. `numbers`: their numbers, as an array
/// of JSON.
pub(super) fn write(
    connection: &Connection,
    source: &Source,
    letters: &[Letter],
    numbers: &str,
) -> Result<(), Fault> {
    let mut rows = rows(connection, source, numbers).map_err(Failure::into_fault)?;
    let sql = format!(
        r#"INSERT INTO main.{REJECTED} (source, destination, "key", "row", code, message, "constraint") VALUES (?, ?, ?, ?, ?, ?, ?)"#
    );
    let failed = |error: rusqlite::Error| Failure::from(error).into_fault();
    let mut insert = connection.prepare_cached(&sql).map_err(failed)?;
    for letter in letters {
        let Some((key, row)) = rows.remove(&letter.row) else {
            return Err(Fault::internal("a picked row cannot be read any more"));
        };
        insert
            .execute(rusqlite::params![
                source.name.to_string(),
                letter.destination,
                key,
                row,
                letter.code,
                letter.message,
                letter.constraint
            ])
            .map_err(failed)?;
    }
    Ok(())
}

/// Keys and rows as JSON, by their places.
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

/// A value as a letter keeps it.
fn kept(stored: ValueRef<'_>, of: ColumnType) -> Value {
    match stored {
        ValueRef::Text(bytes) if str::from_utf8(bytes).is_err() => record::unreadable(bytes),
        stored => read::value(stored, of),
    }
}

/// Notes a batch.
pub(super) fn note(connection: &Connection, batch: &str) -> Result<(), Failure> {
    let sql = format!("INSERT INTO main.{BATCHES} (batch) VALUES (?1)");
    connection.prepare_cached(&sql)?.execute([batch])?;
    Ok(())
}

/// Of each batch, whether it is noted.
pub(super) fn noted(connection: &Connection, batches: &[Box<str>]) -> Result<Vec<bool>, Failure> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM main.{BATCHES} WHERE batch = ?1)");
    let mut ask = connection.prepare_cached(&sql)?;
    let mut is_noted = |batch: &str| ask.query_row([batch], |row| row.get(0));
    Ok(batches
        .iter()
        .map(|batch| is_noted(batch))
        .collect::<rusqlite::Result<_>>()?)
}

/// The oldest batches that are noted.
pub(super) fn oldest(connection: &Connection, most: usize) -> Result<Vec<Box<str>>, Failure> {
    let sql = format!("SELECT batch FROM main.{BATCHES} ORDER BY moved_at, batch LIMIT ?1");
    let mut ask = connection.prepare_cached(&sql)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let batches = ask.query_map([most], |row| row.get::<_, Box<str>>(0))?;
    Ok(batches.collect::<rusqlite::Result<_>>()?)
}

/// Takes notes out.
pub(super) fn forget(connection: &Connection, batches: &[Box<str>]) -> Result<(), Failure> {
    let list = record::array(
        &batches
            .iter()
            .map(|b| Value::text(b.clone()))
            .collect::<Vec<_>>(),
    );
    let sql =
        format!("DELETE FROM main.{BATCHES} WHERE batch IN (SELECT value FROM json_each(?1))");
    connection.prepare_cached(&sql)?.execute([list])?;
    Ok(())
}
