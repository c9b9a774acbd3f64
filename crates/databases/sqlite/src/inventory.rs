//! Lists tables and the keys of their rows, for replicas.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::types::Value as Stored;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};
use windrow_core::Row;
use windrow_core::inventory::parents_first;
use windrow_core::{Fault, Inventory, KeyRange, KeyedTable, Name, TableName, Value};
use windrow_database::quote::{push_ident, push_idents};

use super::executor::writer::Writer;
use super::values::column::ColumnType;
use super::values::read;

const TABLES: &str = "\
SELECT s.name FROM main.sqlite_schema s
JOIN pragma_table_list l ON l.schema = 'main' AND l.name = s.name AND l.type = 'table'
WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY s.name";

const REFERENCES: &str = "\
SELECT s.name, p.name FROM main.sqlite_schema s, pragma_foreign_key_list(s.name, 'main') f
JOIN main.sqlite_schema p ON p.type = 'table' AND p.name = f.\"table\" COLLATE NOCASE
WHERE s.type = 'table'";

const NAME: &str =
    "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE";

/// Values of `hidden` for generated columns.
const COLUMNS: &str = "\
SELECT name, pk, hidden FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid";

const TYPES: &str = "\
SELECT c.name, coalesce(c.type, ''), l.strict FROM pragma_table_xinfo(?1, 'main') c
JOIN pragma_table_list l ON l.schema = 'main' AND l.name = ?1 WHERE c.hidden <> 1";

/// The ends of a range of keys.
type Ends = (Option<Row>, Option<Row>);

/// The tables of a file.
#[derive(Debug)]
pub(super) struct SqliteInventory {
    writer: Arc<Writer>,
}

impl SqliteInventory {
    pub(super) fn new(writer: &Arc<Writer>) -> Self {
        Self {
            writer: writer.clone(),
        }
    }
}

#[async_trait]
impl Inventory for SqliteInventory {
    fn has_schemas(&self) -> bool {
        false
    }

    async fn tables(&self) -> Result<Vec<TableName>, Fault> {
        self.writer.query(tables).await
    }

    async fn table(&self, name: &TableName) -> Result<Option<KeyedTable>, Fault> {
        let schema = name.schema.as_ref();
        if schema.is_some_and(|schema| !schema.eq_ignore_ascii_case("main")) {
            return Ok(None);
        }
        let table = name.table.clone();
        self.writer
            .query(move |connection| describe(connection, &table))
            .await
    }

    async fn rows(
        &self,
        table: &KeyedTable,
        columns: &[Name],
        range: KeyRange<'_>,
        most: usize,
    ) -> Result<Vec<Row>, Fault> {
        let (table, columns) = (table.clone(), columns.to_vec());
        let ends: Ends = (range.after.map(Row::from), range.to.map(Row::from));
        self.writer
            .query(move |connection| rows(connection, &table, &columns, &ends, most))
            .await
    }

    /// Returns at once: there is one writer, and this job has waited for all before it.
    async fn settled(&self) -> Result<(), Fault> {
        Ok(())
    }
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<TableName>> {
    let name = |name: String| TableName::bare(name);
    let mut ask = connection.prepare(TABLES)?;
    let tables = ask.query_map([], |row| row.get(0).map(name))?;
    let tables = tables.collect::<rusqlite::Result<_>>()?;
    let mut ask = connection.prepare(REFERENCES)?;
    let references = ask.query_map([], |row| Ok((row.get(0).map(name)?, row.get(1).map(name)?)))?;
    let references: Vec<_> = references.collect::<rusqlite::Result<_>>()?;
    Ok(parents_first(tables, &references))
}

fn describe(connection: &Connection, table: &Name) -> rusqlite::Result<Option<KeyedTable>> {
    let mut ask = connection.prepare(NAME)?;
    let found: Option<String> = ask.query_row([&**table], |row| row.get(0)).optional()?;
    let Some(own) = found else { return Ok(None) };
    let mut ask = connection.prepare(COLUMNS)?;
    let mut rows = ask.query([&own])?;
    let (mut columns, mut generated, mut key) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let name: Name = row.get::<_, String>(0)?.into();
        let place: i64 = row.get(1)?;
        if place > 0 {
            key.push((place, name.clone()));
        }
        if row.get::<_, i64>(2)? > 1 {
            generated.push(name.clone());
        }
        columns.push(name);
    }
    key.sort_unstable();
    Ok(Some(KeyedTable {
        name: TableName::bare(own),
        key: key.into_iter().map(|(_, name)| name).collect(),
        columns: columns.into(),
        generated: generated.into(),
        // A trigger cannot change the row that fires it. A value finds the row that stores it,
        // after the conversion of its column.
        keeps_key: true,
    }))
}

fn rows(
    connection: &Connection,
    table: &KeyedTable,
    columns: &[Name],
    ends: &Ends,
    most: usize,
) -> rusqlite::Result<Vec<Row>> {
    let types = types(connection, table, columns)?;
    let (mut sql, mut key) = ("SELECT ".to_owned(), String::new());
    push_idents(&mut sql, columns.iter());
    push_idents(&mut key, table.key.iter());
    sql.push_str(" FROM main.");
    push_ident(&mut sql, &table.name.table);
    let (mut given, mut word) = (Vec::new(), "WHERE");
    for (sign, end) in [(">", &ends.0), ("<=", &ends.1)] {
        let Some(end) = end else { continue };
        let places = vec!["?"; end.len()].join(", ");
        sql.push_str(&format!(" {word} ({key}) {sign} ({places})"));
        given.extend(end.iter().map(stored));
        word = "AND";
    }
    sql.push_str(&format!(" ORDER BY {key} LIMIT {most}"));
    let mut ask = connection.prepare(&sql)?;
    let rows = ask.query_map(params_from_iter(given), |row| {
        let types = types.iter().enumerate();
        types
            .map(|(place, of)| Ok(read::value(row.get_ref(place)?, *of)))
            .collect()
    })?;
    rows.collect()
}

/// Returns the declared types of columns. Values of the key are read as they are stored, because
/// they find rows.
fn types(
    connection: &Connection,
    table: &KeyedTable,
    columns: &[Name],
) -> rusqlite::Result<Vec<ColumnType>> {
    if columns.iter().all(|name| table.key.contains(name)) {
        return Ok(vec![ColumnType::Any; columns.len()]);
    }
    let mut ask = connection.prepare(TYPES)?;
    let declared = ask.query_map([&*table.name.table], |row| {
        let declared = ColumnType::declared(&row.get::<_, String>(1)?, row.get(2)?);
        Ok((Name::from(row.get::<_, String>(0)?), declared))
    })?;
    let declared: HashMap<Name, ColumnType> = declared.collect::<rusqlite::Result<_>>()?;
    let of = |name: &Name| match declared.get(name) {
        Some(declared) if !table.key.contains(name) => *declared,
        _ => ColumnType::Any,
    };
    Ok(columns.iter().map(of).collect())
}

/// Returns a value of a key as it is stored.
fn stored(value: &Value) -> Stored {
    match value {
        Value::Null => Stored::Null,
        Value::Bool(truth) => Stored::Integer(i64::from(*truth)),
        Value::Int(n) => Stored::Integer(*n),
        Value::Number(digits) => digits
            .parse()
            .map_or_else(|_| Stored::Text(digits.to_string()), Stored::Real),
        Value::Text(text) | Value::Json(text) => Stored::Text(text.to_string()),
        Value::Bytes(bytes) => Stored::Blob(bytes.to_vec()),
    }
}
