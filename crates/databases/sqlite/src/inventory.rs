//! Lists tables and their rows.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use rusqlite::types::Value as Stored;
use rusqlite::{Connection, InterruptHandle, OptionalExtension as _, params_from_iter};
use tokio::time::timeout;
use windrow_core::Row;
use windrow_core::inventory::parents_first;
use windrow_core::{Fault, Inventory, KeyedTable, Name, RowFilter, RowPage, TableName, Value};
use windrow_database::page::{PageSql, PageStyle};
use windrow_database::quote::{push_ident, push_idents};

use super::catalog::definition::is_marked;
use super::executor::writer::Writer;
use super::fault::Failure;
use super::values::bind::{Slot, Use, fit};
use super::values::column::ColumnType;
use super::values::packed::Datum;
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
SELECT c.name, coalesce(c.type, ''), l.strict, coalesce(s.sql, '')
FROM pragma_table_xinfo(?1, 'main') c
JOIN pragma_table_list l ON l.schema = 'main' AND l.name = ?1
LEFT JOIN main.sqlite_schema s ON s.type = 'table' AND s.name = ?1 WHERE c.hidden <> 1";

const STYLE: PageStyle = PageStyle {
    push_ident,
    is_numbered: false,
    compares_rows: true,
};

/// The tables of a file.
#[derive(Debug)]
pub(super) struct SqliteInventory {
    writer: Arc<Writer>,
    /// The thread that reads rows: the writer's for a database in memory.
    reader: Arc<Writer>,
}

impl SqliteInventory {
    pub(super) fn new(writer: &Arc<Writer>, reader: Arc<Writer>) -> Self {
        Self {
            writer: writer.clone(),
            reader,
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

    async fn rows(&self, page: &RowPage<'_>) -> Result<Vec<Row>, Fault> {
        let time = page.time;
        let page = OwnedPage {
            table: page.table.clone(),
            columns: page.columns.to_vec(),
            order: page.order.to_vec(),
            is_descending: page.is_descending,
            ends: [page.after, page.to].map(|end| end.map(Row::from)),
            filters: page.filters.to_vec(),
            is_spelled: page.is_spelled,
            rows: page.rows,
            bytes: page.bytes,
        };
        let stop = Stop::default();
        let running = stop.clone();
        let rows = self.reader.run(move |database| {
            let connection = database.session()?.connection();
            if !running.begin(connection) {
                return Err(Fault::unavailable("nobody waits for the query any more"));
            }
            let rows = page.read(connection);
            running.end();
            rows
        });
        // Also if the future is dropped, because its client has gone.
        let _guard = StopOnDrop(stop);
        match time {
            Some(time) => timeout(time, rows)
                .await
                .unwrap_or_else(|_| Err(Fault::unavailable("the query took too long"))),
            None => rows.await,
        }
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

/// Stops a query of the reader's thread.
#[derive(Clone, Default)]
struct Stop(Arc<Mutex<(bool, Option<InterruptHandle>)>>);

impl Stop {
    /// Notes that the query begins; false if it was stopped before.
    fn begin(&self, connection: &Connection) -> bool {
        let mut state = self.0.lock();
        state.1 = Some(connection.get_interrupt_handle());
        !state.0
    }

    fn end(&self) {
        self.0.lock().1 = None;
    }

    fn stop(&self) {
        let mut state = self.0.lock();
        state.0 = true;
        if let Some(handle) = &state.1 {
            handle.interrupt();
        }
    }
}

/// Stops its query when it is dropped, unless the query has ended.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A page that the reader's thread owns.
struct OwnedPage {
    table: TableName,
    columns: Vec<Name>,
    order: Vec<Name>,
    is_descending: bool,
    ends: [Option<Row>; 2],
    filters: Vec<RowFilter>,
    is_spelled: bool,
    rows: usize,
    bytes: usize,
}

impl OwnedPage {
    fn read(&self, connection: &Connection) -> Result<Vec<Row>, Fault> {
        let [after, to] = &self.ends;
        let page = RowPage {
            is_descending: self.is_descending,
            after: after.as_deref(),
            to: to.as_deref(),
            filters: &self.filters,
            is_spelled: self.is_spelled,
            bytes: self.bytes,
            ..RowPage::of(&self.table, &self.columns, &self.order, self.rows)
        };
        let rest = PageSql::of(&page, STYLE);
        let mut given = Vec::with_capacity(rest.values.len());
        let declared = declared(connection, &self.table).map_err(failed)?;
        for (column, value) in &rest.values {
            given.push(match page.is_spelled {
                true => spelled(&self.table, column, &declared, value)?,
                false => stored(value),
            });
        }
        let mut sql = "SELECT ".to_owned();
        push_idents(&mut sql, self.columns.iter());
        sql.push_str(" FROM main.");
        push_ident(&mut sql, &self.table.table);
        sql.push_str(&rest.text);
        let types = types(&page, &declared);
        fetch(connection, &sql, given, &types, self.bytes).map_err(failed)
    }
}

fn fetch(
    connection: &Connection,
    sql: &str,
    given: Vec<Stored>,
    types: &[ColumnType],
    bytes: usize,
) -> rusqlite::Result<Vec<Row>> {
    let mut ask = connection.prepare(sql)?;
    let mut cursor = ask.query(params_from_iter(given))?;
    let (mut rows, mut read) = (Vec::new(), 0_usize);
    while let Some(row) = cursor.next()? {
        let values = types.iter().enumerate();
        let values = values.map(|(at, of)| Ok(read::value(row.get_ref(at)?, *of)));
        let values: Row = values.collect::<rusqlite::Result<_>>()?;
        read += values.iter().map(Value::bytes).sum::<usize>();
        rows.push(values);
        if read > bytes {
            break;
        }
    }
    Ok(rows)
}

fn failed(error: rusqlite::Error) -> Fault {
    Failure::from(error).fault
}

/// Returns the declared type of each column.
fn declared(
    connection: &Connection,
    table: &TableName,
) -> rusqlite::Result<HashMap<Name, ColumnType>> {
    let mut ask = connection.prepare(TYPES)?;
    let declared = ask.query_map([&*table.table], |row| {
        let declared = ColumnType::declared(&row.get::<_, String>(1)?, row.get(2)?);
        let declared = match is_marked(&table.table, row.get_ref(3)?.as_str()?) {
            true => declared.of_made(),
            false => declared,
        };
        Ok((Name::from(row.get::<_, String>(0)?), declared))
    })?;
    declared.collect()
}

/// Returns the types by which the columns of a page are read. Values that order the rows are read
/// as they are stored if they will find rows, so if they are not spelled.
fn types(page: &RowPage<'_>, declared: &HashMap<Name, ColumnType>) -> Vec<ColumnType> {
    let of = |name: &Name| match declared.get(name) {
        Some(declared) if page.is_spelled || !page.order.contains(name) => *declared,
        _ => ColumnType::Any,
    };
    page.columns.iter().map(of).collect()
}

/// Returns the value that a text of a URL spells for its column.
fn spelled(
    table: &TableName,
    column: &Name,
    declared: &HashMap<Name, ColumnType>,
    value: &Value,
) -> Result<Stored, Fault> {
    let Value::Text(text) = value else {
        return Ok(stored(value));
    };
    let slot = Slot {
        column: column.clone(),
        column_type: declared.get(column).copied().unwrap_or(ColumnType::Any),
        use_: Use::Spelled,
        parameter: 1,
    };
    let mut scratch = Vec::new();
    let value = fit(Datum::Text(text), &slot, table, &mut scratch)?;
    Stored::try_from(value).map_err(|error| Fault::internal(error.to_string()))
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
