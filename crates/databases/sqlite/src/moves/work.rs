//! Executes a mover's steps on its connection.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use windrow_core::moves::{Destination, PickMost, Picked, Refused, TableFacts};
use windrow_core::{Fault, FaultClass, Value, record};

use super::letters;
use super::letters::Letter;
use super::source::{Source, clear};
use crate::fault::Failure;
use crate::values::read;

/// Rows of one destination, by their numbers.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) to: Destination,
    pub(super) rows: Numbers,
}

/// Numbers of picked rows (their places, counted from 1), as an array of JSON.
#[derive(Debug)]
pub(super) struct Numbers {
    json: String,
    count: usize,
}

impl Numbers {
    pub(super) fn of(places: impl IntoIterator<Item = usize>) -> Self {
        let mut json = String::from("[");
        let mut count = 0;
        for place in places {
            json.push_str(if count > 0 { "," } else { "" });
            json.push_str(&(place + 1).to_string());
            count += 1;
        }
        json.push(']');
        Self { json, count }
    }
}

/// Begins a write transaction.
pub(super) fn begin(connection: &Connection) -> Result<(), Failure> {
    Ok(connection.execute_batch("BEGIN IMMEDIATE")?)
}

/// Rolls back the transaction, if there is one.
pub(super) fn roll_back(connection: &Connection) -> Result<(), Fault> {
    if connection.is_autocommit() {
        return Ok(());
    }
    connection
        .execute_batch("ROLLBACK")
        .map_err(|error| Fault::unavailable(Failure::from(error).fault.message))
}

/// Commits. If a constraint that is checked only now refuses that, the transaction still exists.
pub(super) fn commit(connection: &Connection) -> Result<(), Fault> {
    if connection.is_autocommit() {
        return Err(Fault::unavailable(
            "SQLite's transaction has ended before its commit",
        ));
    }
    connection.execute_batch("COMMIT").map_err(|error| {
        let Failure { fault, scope } = error.into();
        // A commit that could not be synced may turn out to be written.
        let synced = scope != crate::fault::Scope::Sync;
        if fault.class != FaultClass::ForeignKey {
            roll_back(connection).ok();
        }
        match synced {
            true => fault,
            false => Fault::unknown(fault.message),
        }
    })
}

/// Picks rows in a transaction that has begun. Returns their number.
pub(super) fn pick(
    connection: &Connection,
    source: &Source,
    rows: usize,
) -> Result<usize, Failure> {
    connection.execute_batch(&clear())?;
    let rows = i64::try_from(rows.max(1)).unwrap_or(i64::MAX);
    Ok(connection.prepare_cached(&source.pick)?.execute([rows])?)
}

/// Sets the savepoint that [`retreat`] goes back to.
pub(super) fn set_savepoint(connection: &Connection) -> Result<(), Failure> {
    Ok(connection.execute_batch("SAVEPOINT windrow_picked")?)
}

/// Undoes everything since the savepoint. Returns true if the transaction still exists.
pub(super) fn retreat(connection: &Connection) -> Result<bool, Failure> {
    if connection.is_autocommit() {
        return Ok(false);
    }
    connection.execute_batch("ROLLBACK TO windrow_picked")?;
    Ok(true)
}

/// Reads the picked rows, as far as the plan asks for them and their bytes are within its limit.
pub(super) fn look(
    connection: &Connection,
    source: &Source,
    count: usize,
    most: PickMost,
) -> Result<Vec<Picked>, Failure> {
    let Some(sql) = &source.look else {
        return Ok(vec![Picked::default(); count]);
    };
    let mut ask = connection.prepare_cached(sql)?;
    let mut rows = ask.query([])?;
    let (mut all, mut bytes) = (Vec::with_capacity(count), 0_usize);
    while let Some(row) = rows.next()? {
        let picked = picked(source, row)?;
        bytes = bytes.saturating_add(picked.values.iter().map(Value::bytes).sum());
        if bytes > most.bytes && !all.is_empty() {
            break;
        }
        all.push(picked);
    }
    Ok(all)
}

fn picked(source: &Source, row: &Row<'_>) -> Result<Picked, Failure> {
    let mut picked = Picked::default();
    if source.routed {
        picked.route = match row.get_ref(0)? {
            ValueRef::Text(text) => match str::from_utf8(text) {
                Ok(text) => Some(text.into()),
                Err(_) => {
                    picked.unfit = Some(Picked::nameless());
                    None
                }
            },
            _ => None,
        };
    }
    if !source.read.is_empty() {
        picked.name = name(source, row)?.into();
        let mut values = Vec::with_capacity(source.read.len());
        for (place, column_type) in source.read.iter().enumerate() {
            let stored = row.get_ref(1 + source.names + place)?;
            values.push(match stored {
                ValueRef::Text(text) if str::from_utf8(text).is_err() => {
                    picked.unfit.get_or_insert_with(|| no_text(source, place));
                    Value::Null
                }
                // Other databases get it as text, which another file would store as text.
                ValueRef::Real(x) if source.alike && x.is_infinite() => {
                    Value::Number(if x > 0.0 { "Infinity" } else { "-Infinity" }.into())
                }
                stored => read::value(stored, *column_type),
            });
        }
        picked.values = values.into();
    }
    Ok(picked)
}

fn no_text(source: &Source, place: usize) -> Fault {
    let column = source.columns.get(place);
    let message = format!(
        "the value of column {} is a text that is not UTF-8, which cannot be brought elsewhere as it is",
        column.map_or("", |name| name)
    );
    Fault::new(FaultClass::Value, "22021", message).with_column(column.map(|name| &**name))
}

/// Returns the key of a row by its values as they are stored: a column holds values of any type,
/// and a text differs from a blob of the same bytes.
fn name(source: &Source, row: &Row<'_>) -> Result<String, Failure> {
    let mut json = String::from("[");
    for place in 0..source.names {
        json.push_str(if place > 0 { "," } else { "" });
        match row.get_ref(1 + place)? {
            ValueRef::Null => {
                let column = row.as_ref().column_name(1 + place)?;
                return Err(Failure::of_write(Fault::invalid(format!(
                    "a row of {} has NULL in the key column {column}, so it cannot be identified",
                    source.name
                ))));
            }
            ValueRef::Integer(n) => record::push_typed(&mut json, &Value::Int(n)),
            ValueRef::Real(x) if x.is_finite() => record::push_typed(&mut json, &Value::from(x)),
            ValueRef::Real(x) => record::push_member(&mut json, "real", &x.to_string()),
            ValueRef::Blob(bytes) => record::push_typed(&mut json, &Value::Bytes(bytes.into())),
            ValueRef::Text(bytes) => match str::from_utf8(bytes) {
                Ok(text) => record::push_typed(&mut json, &Value::text(text)),
                Err(_) => record::push_member(&mut json, "text", &STANDARD.encode(bytes)),
            },
        }
    }
    json.push(']');
    Ok(json)
}

/// Runs something completely or not at all: if it fails, the transaction is as it was before.
fn whole<T, E: From<Fault>>(
    connection: &Connection,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    if connection.is_autocommit() {
        return Err(Fault::unavailable("SQLite's transaction has ended").into());
    }
    let say = |sql| {
        let said = connection.execute_batch(sql);
        said.map_err(|error| E::from(Failure::from(error).fault))
    };
    say("SAVEPOINT windrow_part")?;
    let done = work();
    if done.is_ok() {
        say("RELEASE windrow_part")?;
    } else if !connection.is_autocommit() {
        say("ROLLBACK TO windrow_part; RELEASE windrow_part")?;
    }
    done
}

/// A refusal of certain rows, or a fault of no certain row.
struct At(Refused);

impl From<Fault> for At {
    fn from(fault: Fault) -> Self {
        Self(Refused { at: 0, fault })
    }
}

/// Copies and deletes rows.
pub(super) fn transfer(
    connection: &Connection,
    source: &Source,
    parts: &[Owned],
) -> Result<(), Refused> {
    let all = || {
        for (at, part) in parts.iter().enumerate() {
            let moved = copy(connection, source, part)
                .and_then(|()| delete_now(connection, source, &part.rows));
            moved.map_err(|Failure { fault, .. }| At(Refused { at, fault }))?;
        }
        Ok(())
    };
    whole(connection, all).map_err(|At(refused)| refused)
}

fn copy(connection: &Connection, source: &Source, part: &Owned) -> Result<(), Failure> {
    let mut copy = connection.prepare_cached(&source.copy(&part.to))?;
    match copy.execute([&part.rows.json])? == part.rows.count {
        true => Ok(()),
        false => Err(Failure::of_write(TableFacts::left_out(&part.to.table))),
    }
}

fn delete_now(connection: &Connection, source: &Source, rows: &Numbers) -> Result<(), Failure> {
    let mut delete = connection.prepare_cached(&source.delete)?;
    let deleted = delete.execute([&rows.json])?;
    if deleted == rows.count {
        return Ok(());
    }
    let message = format!(
        "{} rows of {} were picked and {deleted} deleted: a trigger keeps them",
        rows.count, source.name
    );
    let fault = Fault::new(FaultClass::Other, "09000", message);
    Err(Failure::of_write(fault))
}

/// Deletes rows.
pub(super) fn delete(
    connection: &Connection,
    source: &Source,
    rows: &Numbers,
) -> Result<(), Fault> {
    whole(connection, || Ok(delete_now(connection, source, rows)?))
}

/// Writes rows to the dead letters, and deletes them from the source.
pub(super) fn reject(
    connection: &Connection,
    source: &Source,
    letters: &[Letter],
) -> Result<(), Fault> {
    let rows = Numbers::of(letters.iter().map(|letter| letter.row));
    whole(connection, || {
        letters::write(connection, source, letters, &rows.json)?;
        Ok(delete_now(connection, source, &rows)?)
    })
}

/// Returns true if there are rows.
pub(super) fn left(connection: &Connection, source: &Source) -> Result<bool, Failure> {
    Ok(connection.query_row(&source.left, [], |row| row.get(0))?)
}
