//! A portion: one transaction.

use rusqlite::Connection;
use rusqlite::types::ToSqlOutput;
use windrow_core::value::is_number;
use windrow_core::{
    Fault, FaultClass, Field, LoadFault, Loaded, Mark, Name, OnConflict, Rows, Shape, TableName,
};

use super::{marks, plain, unsupported};
use crate::sqlite::bind::{Misfit, fit};
use crate::sqlite::fault::{Failure, Scope};
use crate::sqlite::packed::Datum;
use crate::sqlite::session::Session;
use crate::sqlite::statement::{Plan, Refusal, Use};
use crate::sqlite::writer::Desk;

/// The table's columns that can be written.
pub(super) fn columns(desk: &mut Desk, table: &TableName) -> Result<Option<Vec<Name>>, Fault> {
    let session = desk.session()?;
    session.renew().map_err(plain)?;
    let table = session.table(table).map_err(plain)?;
    let Some(table) = table else {
        return Ok(None);
    };
    let sql = "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden = 0 ORDER BY cid";
    let mut ask = session.connection().prepare_cached(sql).map_err(plain)?;
    let names = ask
        .query_map([&*table.name], |row| row.get::<_, String>(0))
        .map_err(plain)?;
    let names = names.map(|name| name.map(Name::from).map_err(plain));
    names.collect::<Result<_, _>>().map(Some)
}

/// Whether rows of a shape can be loaded.
pub(super) fn check(desk: &mut Desk, shape: &std::sync::Arc<Shape>) -> Result<(), Fault> {
    let session = desk.session()?;
    session.renew().map_err(plain)?;
    match session.plan(shape).map_err(plain)? {
        Ok(plan) if plan.slots.iter().any(|slot| slot.use_ == Use::Missing) => Err(grows()),
        Ok(_) => Ok(()),
        Err(Refusal::Grow) => Err(grows()),
        Err(Refusal::Fault(fault)) => Err(fault),
    }
}

/// Writes a portion and its mark, or nothing.
pub(super) fn load(
    desk: &mut Desk,
    shape: &std::sync::Arc<Shape>,
    rows: &Rows,
    mark: Option<&Mark>,
) -> Result<Loaded, LoadFault> {
    let session = desk.session().map_err(LoadFault::Again)?;
    let loaded = transaction(session, shape, rows, mark);
    let broken = matches!(loaded, Err(LoadFault::Unknown(_) | LoadFault::Hopeless(_)));
    if loaded.is_err() && (!roll_back(session.connection()) || broken) {
        desk.discard();
    }
    loaded
}

fn transaction(
    session: &mut Session,
    shape: &std::sync::Arc<Shape>,
    rows: &Rows,
    mark: Option<&Mark>,
) -> Result<Loaded, LoadFault> {
    say(session.connection(), "BEGIN IMMEDIATE").map_err(before_commit)?;
    session.renew().map_err(before_commit)?;
    let plan = session.plan(shape).map_err(before_commit)?;
    let plan = plan.map_err(|refusal| match refusal {
        Refusal::Grow => LoadFault::Refused(grows()),
        Refusal::Fault(fault) => LoadFault::Hopeless(fault),
    })?;
    let loaded = write(session.connection(), shape, &plan, rows)?;
    if let Some(mark) = mark {
        marks::insert(session.connection(), mark).map_err(of_mark)?;
    }
    say(session.connection(), "COMMIT").map_err(of_commit)?;
    Ok(loaded)
}

/// Writes all rows.
fn write(
    connection: &Connection,
    shape: &Shape,
    plan: &Plan,
    rows: &Rows,
) -> Result<Loaded, LoadFault> {
    if rows.is_empty() {
        return Ok(Loaded::default());
    }
    if rows.columns() != plan.slots.len() {
        let why = "a portion has another number of columns than its load";
        return Err(LoadFault::Hopeless(Fault::internal(why)));
    }
    let mut statement = connection
        .prepare_cached(&plan.sql)
        .map_err(before_commit)?;
    let mut fields = rows.fields();
    let mut scratch = Vec::new();
    let mut loaded = Loaded::default();
    for _ in 0..rows.len() {
        for slot in &plan.slots {
            let datum = datum(fields.next().unwrap_or(Field::Null));
            if slot.use_ == Use::Missing {
                return Err(LoadFault::Refused(grows()));
            }
            let value = fit(datum, slot, &shape.table, &mut scratch).map_err(|misfit| {
                LoadFault::Refused(match misfit {
                    Misfit::Grow => grows(),
                    Misfit::Fault(fault) => fault,
                })
            })?;
            statement
                .raw_bind_parameter(slot.parameter, ToSqlOutput::Borrowed(value))
                .map_err(before_commit)?;
        }
        let written = statement.raw_execute().map_err(before_commit)? as u64;
        loaded.written += written;
        loaded.ignored += u64::from(written == 0 && shape.on_conflict == OnConflict::Ignore);
    }
    Ok(loaded)
}

/// The value as a batch has it: what a write of the field alone would bring.
fn datum(field: Field<'_>) -> Datum<'_> {
    match field {
        Field::Null => Datum::Null,
        Field::Plain(text) if is_number(text.as_bytes()) => number(text),
        Field::Plain(text) | Field::Text(text) => Datum::Text(text),
        Field::Number(digits) => number(digits),
        Field::Bool(truth) => Datum::Bool(truth),
        Field::Json(text) => Datum::Json(text),
        Field::Bytes(bytes) => Datum::Bytes(bytes),
    }
}

/// As [`windrow_core::Value::number`].
fn number(digits: &str) -> Datum<'_> {
    match digits.parse() {
        Ok(n) if digits != "-0" && !digits.starts_with('+') => Datum::Int(n),
        _ => Datum::Number(digits),
    }
}

/// Executes a statement without parameters and results.
pub(super) fn say(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.raw_execute().map(|_| ())
}

/// False where the transaction is still there, so that the connection is of no use any more.
pub(super) fn roll_back(connection: &Connection) -> bool {
    if !connection.is_autocommit() {
        // What counts is whether the transaction is gone.
        drop(say(connection, "ROLLBACK"));
    }
    connection.is_autocommit()
}

fn before_commit(error: rusqlite::Error) -> LoadFault {
    let Failure { fault, scope } = error.into();
    match (scope, fault.class) {
        (Scope::Busy, _) | (_, FaultClass::Unavailable) => LoadFault::Again(fault),
        (Scope::Machine | Scope::Sync, _) | (_, FaultClass::NoTable | FaultClass::NoColumn) => {
            LoadFault::Hopeless(fault)
        }
        (Scope::Write, _) => LoadFault::Refused(fault),
    }
}

/// A commit that failed is undone. Deferred foreign keys are checked by it.
fn of_commit(error: rusqlite::Error) -> LoadFault {
    let Failure { fault, scope } = Failure::from(error);
    match scope {
        // The log may hold the whole commit; only the next opening of the file will show.
        Scope::Sync => LoadFault::Unknown(Fault::unknown(fault.message)),
        Scope::Busy => LoadFault::Again(fault),
        Scope::Machine if fault.class == FaultClass::Unavailable => LoadFault::Again(fault),
        Scope::Machine => LoadFault::Hopeless(fault),
        Scope::Write => LoadFault::Refused(fault),
    }
}

/// A mark that cannot be written is no fault of the rows.
fn of_mark(error: rusqlite::Error) -> LoadFault {
    match before_commit(error) {
        LoadFault::Refused(fault) => LoadFault::Hopeless(fault),
        other => other,
    }
}

fn grows() -> Fault {
    unsupported("a column is to be added or widened first")
}
