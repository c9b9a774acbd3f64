//! Creates and extends tables for rows, if [`crate::Options::create_tables`] is set.

use rusqlite::Connection;
use windrow_core::bookkeeping::OwnTable;
use windrow_core::{Fault, FaultClass, Key, Name, Op, Shape, TableName};
use windrow_database::decimal;
use windrow_database::infer::{Kind, SeenColumns};
use windrow_database::quote::{push_ident, push_table};

use super::definition::definition;
use super::table::Table;
use crate::fault::Failure;
use crate::values::column::ColumnType;
use crate::values::packed::{Datum, Packed};

/// A column that rows need.
#[derive(Clone, Debug)]
pub(crate) struct MissingColumn {
    name: Name,
    kind: Option<Kind>,
    double: bool,
}

/// Returns the columns that the rows of a table need, from the writes of these numbers.
pub(crate) fn wanted(
    packed: &Packed,
    writes: impl Iterator<Item = usize>,
    table: &TableName,
) -> Vec<MissingColumn> {
    let mut seen_columns = SeenColumns::default();
    for write in writes.filter_map(|w| packed.write(w)) {
        let Some(shape) = packed.shape(write.shape) else {
            continue;
        };
        if shape.table != *table || !matches!(shape.op, Op::Insert | Op::Update) {
            continue;
        }
        for (place, (name, datum)) in shape.columns.iter().zip(write.values()).enumerate() {
            let text = match datum {
                Datum::Text(text) => Some(text),
                _ => None,
            };
            seen_columns.note(place, name, kind_of(datum), text);
        }
    }
    seen_columns.settle(&[], &[]);
    let mut wanted: Vec<MissingColumn> = Vec::new();
    for seen_column in seen_columns.columns() {
        let same = wanted
            .iter_mut()
            .find(|w| w.name.eq_ignore_ascii_case(&seen_column.name));
        match same {
            Some(same) => {
                same.kind = match (same.kind, seen_column.kind) {
                    (Some(a), Some(b)) => Some(a.join(b)),
                    (a, b) => a.or(b),
                };
                same.double &= seen_column.double;
            }
            None => wanted.push(MissingColumn {
                name: seen_column.name.clone(),
                kind: seen_column.kind,
                double: seen_column.double,
            }),
        }
    }
    wanted
}

fn kind_of(datum: Datum<'_>) -> (Option<Kind>, bool) {
    match datum {
        Datum::Null => (None, true),
        Datum::Bool(_) => (Some(Kind::Bool), true),
        Datum::Int(n) => (Some(Kind::Int), decimal::int_is_double(n)),
        Datum::Number(digits) => (Some(Kind::of_digits(digits)), decimal::is_double(digits)),
        Datum::Text(_) => (Some(Kind::Text), true),
        Datum::Bytes(_) => (Some(Kind::Bytes), true),
        Datum::Json(_) => (Some(Kind::Json), true),
    }
}

/// Creates the table of a write. `received_at`: the column for the moment of each row.
///
/// # Errors
/// SQLite's own; [`FaultClass::NoTable`] if the row does not show the table's columns.
pub(crate) fn create(
    connection: &Connection,
    (packed, write, shape): (&Packed, usize, &Shape),
    wanted: &[MissingColumn],
    received_at: Option<&Name>,
) -> Result<(), Failure> {
    let table = &shape.table;
    if let Some(schema) = &table.schema
        && !schema.eq_ignore_ascii_case("main")
    {
        let message = format!("no such schema: {schema}; a SQLite file has the schema main only");
        return Err(Failure::of_write(Fault::new(
            FaultClass::NoTable,
            "3F000",
            message,
        )));
    }
    if OwnTable::is_one(table) {
        let message = format!("no such table: {table}");
        return Err(Failure::of_write(Fault::new(
            FaultClass::NoTable,
            "42P01",
            message,
        )));
    }
    let mut values = packed.write(write).into_iter().flat_map(|w| w.values());
    if values.all(|datum| datum == Datum::Null) {
        let message = format!(
            "no such table: {table}; it cannot be created from a row that holds nothing but null"
        );
        return Err(Failure::of_write(Fault::new(
            FaultClass::NoTable,
            "42P01",
            message,
        )));
    }
    let primary = primary(shape, wanted)?;
    let columns: Vec<(Name, ColumnType)> = wanted
        .iter()
        .filter_map(|w| {
            let column_type = match primary.contains(&w.name) {
                true => ColumnType::of_kind(w.kind.unwrap_or(Kind::Int), w.double),
                false => ColumnType::of_row(w.kind?, w.double),
            };
            Some((w.name.clone(), column_type))
        })
        .collect();
    let columns = columns.iter().map(|(name, t)| (&**name, *t));
    let names = primary.iter().map(|n| &**n).collect::<Vec<_>>();
    let has = |name: &Name| wanted.iter().any(|w| w.name.eq_ignore_ascii_case(name));
    let moment = received_at.filter(|name| !has(name));
    let moment = moment.map(|name| &**name);
    let sql = definition(&table.table, columns, moment, &names);
    connection.execute_batch(&sql)?;
    tracing::info!(sql, "created");
    Ok(())
}

/// Returns the primary key of a new table: the key that the write names, or else a column called
/// `id`.
fn primary(shape: &Shape, wanted: &[MissingColumn]) -> Result<Vec<Name>, Failure> {
    let find = |name: &str| {
        let mut found = wanted.iter().map(|w| &w.name);
        found.find(|n| n.eq_ignore_ascii_case(name)).cloned()
    };
    match &shape.key {
        Key::Columns(names) => {
            let column = |name: &Name| {
                find(name).ok_or_else(|| {
                    let message = format!(
                        "table {} cannot be created with the key column {name}, which the row does not name",
                        shape.table
                    );
                    Failure::of_write(Fault::new(FaultClass::NoColumn, "42703", message))
                })
            };
            names.iter().map(column).collect()
        }
        Key::Primary => {
            let named = shape.columns.iter().any(|c| c.eq_ignore_ascii_case("id"));
            Ok(find("id").filter(|_| named).into_iter().collect())
        }
    }
}

/// Adds the columns that rows need to a table.
///
/// # Errors
/// SQLite's own; [`FaultClass::NoColumn`] if the row does not show the type of its column.
pub(crate) fn extend(
    connection: &Connection,
    table: &Table,
    shape: &Shape,
    wanted: &[MissingColumn],
) -> Result<(), Failure> {
    let missing = wanted.iter().filter(|w| table.column(&w.name).is_none());
    let added: Vec<(&Name, ColumnType)> = missing
        .filter_map(|w| Some((&w.name, ColumnType::of_row(w.kind?, w.double))))
        .collect();
    if added.is_empty() {
        return Err(Failure::of_write(untyped(table, shape)));
    }
    for (name, column_type) in added {
        let mut sql = String::from("ALTER TABLE ");
        push_table(&mut sql, &TableName::bare(table.name.clone()));
        sql.push_str(" ADD COLUMN ");
        push_ident(&mut sql, name);
        sql.push(' ');
        sql.push_str(if table.strict {
            column_type.strict_sql()
        } else {
            column_type.sql()
        });
        connection.execute_batch(&sql)?;
        tracing::info!(sql, "added");
    }
    Ok(())
}

/// Returns the fault of a column that the key or the answer needs, and for which the row has NULL.
fn untyped(table: &Table, shape: &Shape) -> Fault {
    let absent = shape.columns.iter().find(|c| table.column(c).is_none());
    let name = absent.map_or("", |n| n);
    let message = format!(
        "table {} has no column named {name}, and null does not say what type it should have",
        shape.table
    );
    Fault::new(FaultClass::NoColumn, "42703", message)
        .with_table(Some(&*table.name))
        .with_column(absent.map(|n| &**n))
}
