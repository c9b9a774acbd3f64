//! A portion: one transaction.

use rusqlite::Connection;
use windrow_core::{
    Claim, Fault, FaultClass, LoadColumn, LoadFault, Mark, Means, OnConflict, Rows, Shape, Sifted,
    TableName,
};

use super::row::{Bad, RowWriter};
use super::{marks, plain, unsupported};
use crate::sqlite::fault::{Failure, Scope};
use crate::sqlite::session::Session;
use crate::sqlite::statement::{Plan, Refusal, Use};
use crate::sqlite::writer::Desk;

/// The table's columns. What one that grows takes follows from its values.
pub(super) fn columns(
    desk: &mut Desk,
    table: &TableName,
) -> Result<Option<Vec<LoadColumn>>, Fault> {
    let session = desk.session()?;
    session.renew().map_err(plain)?;
    let creates = session.creates();
    let table = session.table(table).map_err(plain)?;
    let Some(table) = table else {
        return Ok(None);
    };
    let grows = creates && table.made;
    // A key of NULL may be given a number.
    let sql = "SELECT name, lower(type), hidden > 1, pk > 0 OR upper(coalesce(dflt_value, 'NULL')) <> 'NULL' \
               FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid";
    let mut ask = session.connection().prepare_cached(sql).map_err(plain)?;
    let columns = ask
        .query_map([&*table.name], |row| {
            Ok(LoadColumn {
                name: row.get::<_, String>(0)?.into(),
                type_name: row.get::<_, String>(1)?.into(),
                generated: row.get(2)?,
                defaults: row.get(3)?,
                means: match grows {
                    true => Means::Looks,
                    false => Means::Itself,
                },
            })
        })
        .map_err(plain)?;
    let columns = columns.map(|column| column.map_err(plain));
    columns.collect::<Result<_, _>>().map(Some)
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

/// What becomes of rows that fail, and the marks of the others.
#[derive(Clone, Copy, Debug)]
pub(super) enum Manner<'a> {
    /// They take the portion back.
    Whole(Option<&'a Mark>),
    /// They are left out.
    Sift(Option<Claim<'a>>),
}

/// Writes a portion and its marks, or nothing.
pub(super) fn load(
    desk: &mut Desk,
    shape: &std::sync::Arc<Shape>,
    rows: &Rows,
    manner: Manner<'_>,
) -> Result<Sifted, LoadFault> {
    let session = desk.session().map_err(LoadFault::Again)?;
    let loaded = transaction(session, shape, rows, manner).and_then(|sifted| {
        session
            .check_file()
            .map(|()| sifted)
            .map_err(LoadFault::Unknown)
    });
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
    manner: Manner<'_>,
) -> Result<Sifted, LoadFault> {
    say(session.connection(), "BEGIN IMMEDIATE").map_err(before_commit)?;
    session.renew().map_err(before_commit)?;
    let plan = session.plan(shape).map_err(before_commit)?;
    let plan = plan.map_err(|refusal| match refusal {
        Refusal::Grow => LoadFault::Refused(grows()),
        Refusal::Fault(fault) => LoadFault::Hopeless(fault),
    })?;
    let connection = session.connection();
    let sifted = write(connection, shape, &plan, rows, manner)?;
    mark(connection, manner, &sifted.left).map_err(of_mark)?;
    say(connection, "COMMIT").map_err(of_commit)?;
    Ok(sifted)
}

/// Writes all rows, or those that can be.
fn write(
    connection: &Connection,
    shape: &Shape,
    plan: &Plan,
    rows: &Rows,
    manner: Manner<'_>,
) -> Result<Sifted, LoadFault> {
    let mut sifted = Sifted::default();
    if rows.is_empty() {
        return Ok(sifted);
    }
    if rows.columns() != plan.slots.len() {
        let why = "a portion has another number of columns than its load";
        return Err(LoadFault::Hopeless(Fault::internal(why)));
    }
    if plan.slots.iter().any(|slot| slot.use_ == Use::Missing) {
        return Err(LoadFault::Refused(grows()));
    }
    let sifts = matches!(manner, Manner::Sift(_));
    let mut row = RowWriter::new(connection, shape, plan, sifts).map_err(before_commit)?;
    let mut fields = rows.fields();
    for place in 0..rows.len() {
        match row.write(&mut fields) {
            Ok(written) => {
                sifted.loaded.written += written;
                let ignored = written == 0 && shape.on_conflict == OnConflict::Ignore;
                sifted.loaded.ignored += u64::from(ignored);
            }
            Err(Bad::Row(_)) if sifts => sifted.left.push(place),
            Err(Bad::Row(fault)) => return Err(LoadFault::Refused(fault)),
            Err(Bad::Portion(fault)) => return Err(fault),
        }
    }
    Ok(sifted)
}

/// Marks what was written.
fn mark(connection: &Connection, manner: Manner<'_>, left: &[usize]) -> rusqlite::Result<()> {
    match manner {
        Manner::Whole(None) | Manner::Sift(None) => Ok(()),
        Manner::Whole(Some(mark)) => marks::insert(connection, &mark.load, mark.span),
        Manner::Sift(Some(claim)) => {
            let mut spans = claim.spans(left).into_iter();
            spans.try_for_each(|span| marks::insert(connection, &claim.mark.load, span))
        }
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

pub(super) fn before_commit(error: rusqlite::Error) -> LoadFault {
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

pub(super) fn grows() -> Fault {
    unsupported("a column is to be added or widened first")
}
