//! A portion: one transaction.

use rusqlite::Connection;
use windrow_core::{
    Claim, Fault, Filtered, LoadColumn, LoadFault, Mark, Means, OnConflict, Rows, Shape, TableName,
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

/// The table's columns. What one that grows takes follows from its values.
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
pub(super) fn check(database: &mut Database, shape: &std::sync::Arc<Shape>) -> Result<(), Fault> {
    let session = database.session()?;
    session.renew().map_err(plain)?;
    match session.plan(shape).map_err(plain)? {
        Ok(plan) if plan.slots.iter().any(|slot| slot.use_ == Use::Missing) => Err(grows()),
        Ok(_) => Ok(()),
        Err(NoPlan::Grow) => Err(grows()),
        Err(NoPlan::Fault(fault)) => Err(fault),
    }
}

/// The handling of rows that fail, and the marks of the others.
#[derive(Clone, Copy, Debug)]
pub(super) enum OnFailure<'a> {
    /// The portion is rolled back.
    Whole(Option<&'a Mark>),
    /// The rows are left out.
    Filter(Option<Claim<'a>>),
}

/// Writes a portion and its marks, or nothing.
pub(super) fn load(
    database: &mut Database,
    shape: &std::sync::Arc<Shape>,
    rows: &Rows,
    on_failure: OnFailure<'_>,
) -> Result<Filtered, LoadFault> {
    let session = database.session().map_err(LoadFault::Again)?;
    let loaded = transaction(session, shape, rows, on_failure).and_then(|filtered| {
        session
            .check_file()
            .map(|()| filtered)
            .map_err(LoadFault::Unknown)
    });
    let broken = matches!(loaded, Err(LoadFault::Unknown(_) | LoadFault::Hopeless(_)));
    if loaded.is_err() && (!roll_back(session.connection()) || broken) {
        database.discard();
    }
    loaded
}

fn transaction(
    session: &mut Session,
    shape: &std::sync::Arc<Shape>,
    rows: &Rows,
    on_failure: OnFailure<'_>,
) -> Result<Filtered, LoadFault> {
    say(session.connection(), "BEGIN IMMEDIATE").map_err(before_commit)?;
    session.renew().map_err(before_commit)?;
    let plan = session.plan(shape).map_err(before_commit)?;
    let plan = plan.map_err(|refusal| match refusal {
        NoPlan::Grow => LoadFault::Refused(grows()),
        NoPlan::Fault(fault) => LoadFault::Hopeless(fault),
    })?;
    let connection = session.connection();
    let filtered = write(connection, shape, &plan, rows, on_failure)?;
    mark(connection, on_failure, &filtered.left).map_err(of_mark)?;
    say(connection, "COMMIT").map_err(of_commit)?;
    Ok(filtered)
}

/// Writes all rows, or those that can be.
fn write(
    connection: &Connection,
    shape: &Shape,
    plan: &Plan,
    rows: &Rows,
    on_failure: OnFailure<'_>,
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
    let filters = matches!(on_failure, OnFailure::Filter(_));
    let mut row = RowWriter::new(connection, shape, plan, filters).map_err(before_commit)?;
    let mut fields = rows.fields();
    for place in 0..rows.len() {
        match row.write(&mut fields) {
            Ok(written) => {
                filtered.loaded.written += written;
                let ignored = written == 0 && shape.on_conflict == OnConflict::Ignore;
                filtered.loaded.ignored += u64::from(ignored);
            }
            Err(Bad::Row(_)) if filters => filtered.left.push(place),
            Err(Bad::Row(fault)) => return Err(LoadFault::Refused(fault)),
            Err(Bad::Portion(fault)) => return Err(fault),
        }
    }
    Ok(filtered)
}

/// Marks what was written.
fn mark(
    connection: &Connection,
    on_failure: OnFailure<'_>,
    left: &[usize],
) -> rusqlite::Result<()> {
    match on_failure {
        OnFailure::Whole(None) | OnFailure::Filter(None) => Ok(()),
        OnFailure::Whole(Some(mark)) => marks::insert(connection, &mark.load, mark.span),
        OnFailure::Filter(Some(claim)) => {
            let mut spans = claim.spans(left).into_iter();
            spans.try_for_each(|span| marks::insert(connection, &claim.mark.load, span))
        }
    }
}
