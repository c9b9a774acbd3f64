//! A table's columns widened: SQLite cannot alter a column's type, so the table is made anew
//! (<https://sqlite.org/lang_altertable.html>, 7). Runs inside a transaction with foreign keys switched off.
//!
//! The rows are carried over one by one rather than by INSERT .. SELECT, because SQLite's own cast
//! of a double to text keeps 15 digits only.

use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, Value as Owned, ValueRef};
use windrow_core::Value;
use windrow_database::quote::{push_ident, push_idents};

use super::definition::definition;
use super::table::Table;
use crate::fault::Failure;
use crate::values::column::ColumnType;

/// Whole numbers beyond are not all doubles (2^53).
const DOUBLE_INTS: i64 = 1 << 53;

/// The name of every table's hidden row number (<https://sqlite.org/rowidtable.html>).
const ROW_NUMBER: &str = "rowid";

/// Gives columns, named by their place, other types.
pub(crate) fn rebuild(
    connection: &Connection,
    table: &Table,
    widened: &[(usize, ColumnType)],
) -> Result<(), Failure> {
    let new_type = |place: usize| widened.iter().find(|(p, _)| *p == place).map(|(_, t)| *t);
    let columns = table.columns.iter().enumerate();
    let types: Vec<(ColumnType, ColumnType)> = columns
        .map(|(place, c)| (c.column_type, new_type(place).unwrap_or(c.column_type)))
        .collect();
    let interim = format!("windrow_new_{}", table.name);
    let companions = companions(connection, table)?;
    let named = table.columns.iter().map(|c| &*c.name);
    let primary: Vec<&str> = table.primary_names().map(|n| &**n).collect();
    let sql = definition(
        &interim,
        named.zip(types.iter().map(|(_, to)| *to)),
        &primary,
    );
    connection.execute_batch(&sql)?;
    carry(connection, table, &interim, &types)?;
    replace(connection, table, &interim)?;
    for sql in companions {
        connection.execute_batch(&sql)?;
    }
    for (place, to) in widened {
        if let Some(column) = table.columns.get(*place) {
            let (from, to) = (column.column_type.sql(), to.sql());
            tracing::info!(
                table = &*table.name,
                column = &*column.name,
                from,
                to,
                "widened"
            );
        }
    }
    Ok(())
}

/// True where a column holds no whole number that a double would round.
pub(crate) fn all_doubles(
    connection: &Connection,
    table: &Table,
    place: usize,
) -> Result<bool, Failure> {
    let Some(column) = table.columns.get(place) else {
        return Ok(true);
    };
    let mut sql = String::from("SELECT NOT EXISTS (SELECT 1 FROM ");
    push_ident(&mut sql, &table.name);
    sql.push_str(" WHERE ");
    push_ident(&mut sql, &column.name);
    sql.push_str(" NOT BETWEEN ?1 AND ?2)");
    Ok(connection.query_row(&sql, [-DOUBLE_INTS, DOUBLE_INTS], |row| row.get(0))?)
}

/// The texts of the indexes and triggers, which go when the table goes. Indexes of constraints have
/// none.
fn companions(connection: &Connection, table: &Table) -> Result<Vec<String>, Failure> {
    let mut ask = connection.prepare(
        "SELECT sql FROM main.sqlite_schema
         WHERE type IN ('index', 'trigger') AND sql IS NOT NULL AND tbl_name = ?1 COLLATE NOCASE
         ORDER BY rowid",
    )?;
    let texts = ask.query_map([&*table.name], |row| row.get(0))?;
    Ok(texts.collect::<rusqlite::Result<_>>()?)
}

fn carry(
    connection: &Connection,
    table: &Table,
    interim: &str,
    types: &[(ColumnType, ColumnType)],
) -> Result<(), Failure> {
    // Rows keep their numbers, which other tables (a full-text index, say) may know them by. With a
    // column of their own for it they do so anyway.
    let mut names: Vec<&str> = table.columns.iter().map(|c| &*c.name).collect();
    let mut types = types.to_vec();
    if table.column(ROW_NUMBER).is_none() && !numbers_itself(table, &types) {
        names.push(ROW_NUMBER);
        types.push((ColumnType::Integer, ColumnType::Integer));
    }
    let mut read = String::from("SELECT ");
    push_idents(&mut read, &names);
    read.push_str(" FROM ");
    push_ident(&mut read, &table.name);
    let mut write = String::from("INSERT INTO ");
    push_ident(&mut write, interim);
    write.push_str(" (");
    push_idents(&mut write, &names);
    write.push_str(") VALUES (?");
    write.push_str(&", ?".repeat(types.len().saturating_sub(1)));
    write.push(')');
    let (mut read, mut write) = (connection.prepare(&read)?, connection.prepare(&write)?);
    let mut rows = read.raw_query();
    while let Some(row) = rows.next()? {
        for (i, (from, to)) in types.iter().enumerate() {
            write.raw_bind_parameter(i + 1, convert(row.get_ref(i)?, *from, *to))?;
        }
        write.raw_execute()?;
    }
    Ok(())
}

/// True where the new table's primary key is the row's number itself.
fn numbers_itself(table: &Table, types: &[(ColumnType, ColumnType)]) -> bool {
    let new_type = |place: &usize| types.get(*place).map(|(_, to)| *to);
    matches!(&*table.primary, [place] if new_type(place) == Some(ColumnType::Integer))
}

/// A stored value as the wider column stores it; what affinity does by itself is left to it.
fn convert(stored: ValueRef<'_>, from: ColumnType, to: ColumnType) -> ToSqlOutput<'_> {
    use ColumnType::{Bool, Decimal, Text};
    match (stored, from, to) {
        (ValueRef::Integer(0), Bool, Text) => ToSqlOutput::Borrowed(ValueRef::Text(b"false")),
        (ValueRef::Integer(1), Bool, Text) => ToSqlOutput::Borrowed(ValueRef::Text(b"true")),
        (ValueRef::Real(x), _, Text | Decimal) => match Value::from(x) {
            Value::Number(text) | Value::Text(text) => {
                ToSqlOutput::Owned(Owned::Text(text.into_string()))
            }
            _ => ToSqlOutput::Borrowed(stored),
        },
        _ => ToSqlOutput::Borrowed(stored),
    }
}

/// Puts the new table into the old one's place. In its legacy mode RENAME leaves views and triggers
/// of others alone: they mean the table by its name, before and after.
fn replace(connection: &Connection, table: &Table, interim: &str) -> Result<(), Failure> {
    let mut sql = String::from("DROP TABLE ");
    push_ident(&mut sql, &table.name);
    sql.push_str("; ALTER TABLE ");
    push_ident(&mut sql, interim);
    sql.push_str(" RENAME TO ");
    push_ident(&mut sql, &table.name);
    connection.pragma_update(None, "legacy_alter_table", true)?;
    let replaced = connection.execute_batch(&sql);
    connection.pragma_update(None, "legacy_alter_table", false)?;
    Ok(replaced?)
}
