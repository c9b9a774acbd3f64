//! Writes a portion in one transaction.

use std::sync::Arc;

use rusqlite::Connection;
use windrow_core::{
    Claim, Fault, Filtered, LoadColumn, LoadFault, Means, OnConflict, Rows, Shape, TableName,
};

use super::fault::{before_commit, grows, of_commit, of_mark, plain};
use super::marks;
use super::row::{Bad, RowWriter};
use super::transaction::{roll_back, say};
use crate::executor::plan::Plan;
use crate::executor::session::Session;
use crate::executor::sql::NoPlan;
use crate::executor::writer::Database;
use crate::values::bind::Use;

/// Returns the table's columns. If the table grows, the values decide what a column accepts.
pub(super) fn columns(
    database: &mut Database,
    table: &TableName,
) -> Result<Option<Vec<LoadColumn>>, Fault> {
    let session = database.session()?;
    session.renew().map_err(plain)?;
    let creates = session.creates();
    let table = session.table(table).map_err(plain)?;
    let Some(table) = table else {
        return Ok(None);
    };
    let grows = creates && table.made;
    // SQLite may assign a number to a key that is NULL.
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
                means: match row.get::<_, String>(1)?.as_str() {
                    _ if grows => Means::Looks,
                    "json" => Means::Json,
                    _ => Means::Itself,
                },
            })
        })
        .map_err(plain)?;
    let columns = columns.map(|column| column.map_err(plain));
    columns.collect::<Result<_, _>>().map(Some)
}

/// Checks that rows of a shape can be loaded.
pub(super) fn check(database: &mut Database, shape: &Arc<Shape>) -> Result<(), Fault> {
    let session = database.session()?;
    session.renew().map_err(plain)?;
    match session.plan(shape).map_err(plain)? {
        Ok(plan) if plan.slots.iter().any(|slot| slot.use_ == Use::Missing) => Err(grows()),
        Ok(_) => Ok(()),
        Err(NoPlan::Grow) => Err(grows()),
        Err(NoPlan::Fault(fault)) => Err(fault),
    }
}

/// Writes a portion and its marks, or nothing. `leaves_out` is true if rows that fail are left out.
pub(super) fn write(
    database: &mut Database,
    shape: &Arc<Shape>,
    rows: &Rows,
    leaves_out: bool,
    claim: Option<&Claim<'_>>,
) -> Result<Filtered, LoadFault> {
    let session = database.session().map_err(LoadFault::Again)?;
    let written = transaction(session, shape, rows, leaves_out, claim).and_then(|filtered| {
        session
            .check_file()
            .map(|()| filtered)
            .map_err(LoadFault::Unknown)
    });
    let broken = matches!(written, Err(LoadFault::Unknown(_) | LoadFault::Hopeless(_)));
    if written.is_err() && (!roll_back(session.connection()) || broken) {
        database.discard();
    }
    written
}

fn transaction(
    session: &mut Session,
    shape: &Arc<Shape>,
    rows: &Rows,
    leaves_out: bool,
    claim: Option<&Claim<'_>>,
) -> Result<Filtered, LoadFault> {
    say(session.connection(), "BEGIN IMMEDIATE").map_err(before_commit)?;
    session.renew().map_err(before_commit)?;
    let plan = session.plan(shape).map_err(before_commit)?;
    let plan = plan.map_err(|refusal| match refusal {
        NoPlan::Grow => LoadFault::Refused(grows()),
        NoPlan::Fault(fault) => LoadFault::Hopeless(fault),
    })?;
    let connection = session.connection();
    let filtered = write_rows(connection, shape, &plan, rows, leaves_out)?;
    if let Some(claim) = claim {
        marks::insert(connection, &claim.mark.load, &claim.spans(&filtered.left))
            .map_err(of_mark)?;
    }
    say(connection, "COMMIT").map_err(of_commit)?;
    Ok(filtered)
}

/// Writes all rows, or those that can be written.
fn write_rows(
    connection: &Connection,
    shape: &Shape,
    plan: &Plan,
    rows: &Rows,
    leaves_out: bool,
) -> Result<Filtered, LoadFault> {
    let mut filtered = Filtered::default();
    if rows.is_empty() {
        return Ok(filtered);
    }
    if rows.columns() != plan.slots.len() {
        let why = "a portion has another number of columns than its load";
        return Err(LoadFault::Hopeless(Fault::internal(why)));
    }
    if plan.slots.iter().any(|slot| slot.use_ == Use::Missing) {
        return Err(LoadFault::Refused(grows()));
    }
    let mut row = RowWriter::new(connection, shape, plan, leaves_out).map_err(before_commit)?;
    let mut fields = rows.fields();
    for place in 0..rows.len() {
        match row.write(&mut fields) {
            Ok(written) => {
                filtered.loaded.written += written;
                let ignored = written == 0 && shape.on_conflict == OnConflict::Ignore;
                filtered.loaded.ignored += u64::from(ignored);
            }
            Err(Bad::Row(_)) if leaves_out => filtered.left.push(place),
            Err(Bad::Row(fault)) => return Err(LoadFault::Refused(fault)),
            Err(Bad::Portion(fault)) => return Err(fault),
        }
    }
    Ok(filtered)
}
