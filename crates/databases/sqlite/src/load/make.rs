//! Creates the table of a load, or columns that it lacks, for the rows.

use rusqlite::Connection;
use windrow_core::{Fault, Holds, LoadPlan, Name, Rows, TableName};
use windrow_database::demand::Demand;
use windrow_database::infer::SeenColumn;
use windrow_database::quote::{push_ident, push_table};

use super::fault::plain;
use super::transaction::{roll_back, say};
use crate::catalog::definition::definition;
use crate::catalog::table::Table;
use crate::executor::writer::Database;
use crate::values::column::ColumnType;

/// The columns that rows need.
pub(super) struct Wanted {
    demand: Demand,
    /// Columns whose contents the file declares.
    declared: Vec<(Name, Holds)>,
}

impl Wanted {
    /// Examines rows. Their values decide; the file's declarations matter only for columns without
    /// values.
    pub(super) fn of(plan: &LoadPlan, rows: &Rows, declared: &[Option<Holds>]) -> Self {
        let columns = plan.columns.iter().zip(declared);
        let declared = columns.filter_map(|(name, holds)| Some((name.clone(), (*holds)?)));
        Self {
            demand: Demand::of_rows(plan, rows, &[]),
            declared: declared.collect(),
        }
    }

    fn column_type(&self, seen: &SeenColumn) -> ColumnType {
        let declared = || {
            let mut declared = self.declared.iter();
            declared.find(|(name, _)| *name == seen.name)
        };
        match seen.kind {
            Some(kind) => ColumnType::of_kind(kind, seen.double),
            None => declared().map_or(ColumnType::Any, |(_, holds)| empty(*holds)),
        }
    }
}

/// Returns the type of a column without values for declared contents.
fn empty(holds: Holds) -> ColumnType {
    match holds {
        Holds::Bool => ColumnType::Bool,
        Holds::Int2 | Holds::Int4 | Holds::Int8 => ColumnType::Integer,
        Holds::Float4 | Holds::Float8 => ColumnType::Real,
        Holds::Json => ColumnType::Json,
        Holds::Bytes => ColumnType::Blob,
        Holds::Decimal(..) => ColumnType::Any,
        Holds::Text | Holds::Uuid => ColumnType::Text,
        Holds::Date | Holds::Time | Holds::Timestamp | Holds::Timestamptz => {
            ColumnType::Moment(holds)
        }
    }
}

/// Creates what the rows of a load need. Returns false if rows that are written one by one must do
/// it.
///
/// A column without values is created without a type, so that each later value is stored unchanged.
pub(super) fn make(
    database: &mut Database,
    plan: &LoadPlan,
    wanted: &Wanted,
) -> Result<bool, Fault> {
    let schema = plan.table.schema.as_deref();
    let session = database.session()?;
    if !session.creates() || schema.is_some_and(|schema| !schema.eq_ignore_ascii_case("main")) {
        return Ok(false);
    }
    say(session.connection(), "BEGIN IMMEDIATE").map_err(plain)?;
    let made = session.renew().and_then(|()| {
        let table = session.table(&plan.table)?;
        let statements = match table {
            None => vec![creation(&plan.table, wanted)],
            Some(table) => additions(&table, wanted),
        };
        run(session.connection(), &statements)
    });
    if made.is_err() && !roll_back(session.connection()) {
        database.discard();
    }
    made.map_err(plain).map(|()| true)
}

fn run(connection: &Connection, statements: &[String]) -> rusqlite::Result<()> {
    for sql in statements {
        connection.execute_batch(sql)?;
        tracing::info!(sql, "made");
    }
    say(connection, "COMMIT")
}

fn creation(name: &TableName, wanted: &Wanted) -> String {
    let demand = &wanted.demand;
    let seen = demand.seen_columns.columns();
    let columns = seen
        .iter()
        .map(|seen| (&*seen.name, wanted.column_type(seen)));
    let primary = demand.new.primary(&demand.seen_columns);
    let primary: Vec<&str> = primary.iter().map(|name| &**name).collect();
    definition(&name.table, columns, None, &primary)
}

fn additions(table: &Table, wanted: &Wanted) -> Vec<String> {
    let seen = wanted.demand.seen_columns.columns().iter();
    let lacking = seen.filter(|seen| table.plain && table.column(&seen.name).is_none());
    let addition = |seen: &SeenColumn| {
        let mut sql = String::from("ALTER TABLE ");
        push_table(&mut sql, &TableName::bare(table.name.clone()));
        sql.push_str(" ADD COLUMN ");
        push_ident(&mut sql, &seen.name);
        let column_type = wanted.column_type(seen);
        if table.strict {
            sql.push(' ');
            sql.push_str(column_type.strict_sql());
        } else if column_type != ColumnType::Any {
            sql.push(' ');
            sql.push_str(column_type.sql());
        }
        sql
    };
    lacking.map(addition).collect()
}
