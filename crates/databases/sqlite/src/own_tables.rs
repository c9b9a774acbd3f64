//! Windrow's own tables in SQLite: their texts, and how these are executed. Moments are in UTC, in
//! the form of the gateway.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, TransactionBehavior};
use windrow_bookkeeping::{IDEMPOTENCY, PROGRESS, REJECTED};
use windrow_core::bookkeeping::{
    BATCHES, MARKERS, OwnAnswer, OwnSession, OwnStatement, OwnTable, TableChange,
};
use windrow_core::{Bookkeeping, Fault, Mark};

use super::executor::writer::Writer;

/// The current moment, as a default value.
const NOW: &str = "(strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))";

/// Beginnings of messages about a change that another process has made first.
const RACED: [&str; 2] = ["duplicate column name", "no such column"];

/// Creates and reads Windrow's own tables by the writer's thread.
#[derive(Clone, Debug)]
pub(super) struct SqliteBookkeeping {
    pub(super) writer: Arc<Writer>,
}

#[async_trait]
impl Bookkeeping for SqliteBookkeeping {
    async fn open(&self) -> Result<Box<dyn OwnSession>, Fault> {
        Ok(Box::new(self.clone()))
    }
}

impl SqliteBookkeeping {
    /// Executes statements as one transaction.
    async fn transact(&self, sql: String) -> Result<(), Fault> {
        self.writer
            .query(move |connection| {
                let transaction = rusqlite::Transaction::new_unchecked(
                    connection,
                    TransactionBehavior::Immediate,
                )?;
                transaction.execute_batch(&sql)?;
                transaction.commit()
            })
            .await
    }
}

#[async_trait]
impl OwnSession for SqliteBookkeeping {
    async fn columns(&mut self, table: OwnTable) -> Result<Vec<String>, Fault> {
        self.writer
            .query(move |connection| {
                let sql = "SELECT name FROM pragma_table_info(?1, 'main')";
                let mut ask = connection.prepare(sql)?;
                let names = ask.query_map([table.name()], |row| row.get(0))?;
                names.collect()
            })
            .await
    }

    async fn change(&mut self, statement: OwnStatement<'_>) -> Result<TableChange, Fault> {
        match self.transact(text(statement)).await {
            Ok(()) => Ok(TableChange::Done),
            Err(fault) if RACED.iter().any(|raced| fault.message.contains(raced)) => {
                Ok(TableChange::Raced(fault))
            }
            Err(fault) => Err(fault),
        }
    }

    async fn run(&mut self, statement: OwnStatement<'_>) -> Result<OwnAnswer, Fault> {
        let sql = text(statement);
        if matches!(statement, OwnStatement::MergeMarks(_)) {
            self.transact(sql).await?;
            return Ok(OwnAnswer::default());
        }
        self.writer
            .query(move |connection| run(connection, &sql))
            .await
    }
}

/// Runs a text, which may read rows.
pub(crate) fn run(connection: &Connection, sql: &str) -> rusqlite::Result<OwnAnswer> {
    let mut answer = OwnAnswer::default();
    let mut prepared = connection.prepare(sql)?;
    let columns = prepared.column_count();
    if columns == 0 {
        answer.deleted = prepared.execute([])? as u64;
        return Ok(answer);
    }
    let mut rows = prepared.query([])?;
    while let Some(row) = rows.next()? {
        let cells = (0..columns).map(|place| row.get_ref(place).map(cell));
        answer.rows.push(cells.collect::<rusqlite::Result<_>>()?);
    }
    Ok(answer)
}

fn cell(value: ValueRef<'_>) -> Option<Box<[u8]>> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into_bytes().into()),
        ValueRef::Real(number) => Some(number.to_string().into_bytes().into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.into()),
    }
}

/// Returns a text as a literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns the text of a statement.
fn text(statement: OwnStatement<'_>) -> String {
    match statement {
        OwnStatement::Create(table) => create(table),
        OwnStatement::RenameMovedAt => {
            format!("ALTER TABLE main.{REJECTED} RENAME COLUMN moved_at TO rejected_at")
        }
        OwnStatement::AddEntry => format!("ALTER TABLE main.{REJECTED} ADD COLUMN entry BLOB"),
        OwnStatement::ForgetKeys { age, most } => format!(
            "DELETE FROM main.{IDEMPOTENCY} WHERE rowid IN (SELECT rowid FROM main.{IDEMPOTENCY} \
             WHERE made_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-{} seconds') ORDER BY made_at LIMIT {most})",
            age.as_secs()
        ),
        OwnStatement::ReadRejected { after, most } => format!(
            r#"SELECT id, rejected_at, source, destination, "key", "row", code, message, "constraint", entry
            FROM main.{REJECTED} WHERE id > {after} ORDER BY id LIMIT {most}"#
        ),
        OwnStatement::FindMarkerIndex => format!(
            "SELECT name FROM main.sqlite_schema WHERE type = 'index' AND name = '{MARKERS}_batch'"
        ),
        OwnStatement::IndexMarkers => index_markers(),
        OwnStatement::Plain(text) => text.to_owned(),
        OwnStatement::ReadMarks { load } => format!(
            "SELECT {first}, {} FROM {} WHERE {} = {} ORDER BY {first}",
            Mark::END,
            Mark::TABLE,
            Mark::LOAD,
            literal(load),
            first = Mark::FIRST,
        ),
        OwnStatement::MergeMarks(Mark { load, span }) => format!(
            "DELETE FROM {table} WHERE {of} = {load} AND {first} >= {from} AND {end} <= {to};
            INSERT INTO {table} ({of}, {first}, {end}) VALUES ({load}, {from}, {to})",
            table = Mark::TABLE,
            of = Mark::LOAD,
            first = Mark::FIRST,
            end = Mark::END,
            load = literal(load),
            from = span.first,
            to = span.end,
        ),
    }
}

fn create(table: OwnTable) -> String {
    match table {
        OwnTable::Progress => format!(
            r#"CREATE TABLE IF NOT EXISTS main.{PROGRESS} (spool TEXT NOT NULL, "partition" INTEGER NOT NULL,
            "position" INTEGER NOT NULL, last_entry TEXT NOT NULL DEFAULT '', PRIMARY KEY (spool, "partition"), UNIQUE (spool, "partition", "position"))"#
        ),
        OwnTable::Rejected => format!(
            r#"CREATE TABLE IF NOT EXISTS main.{REJECTED} (id INTEGER PRIMARY KEY AUTOINCREMENT,
            rejected_at TEXT NOT NULL DEFAULT {NOW}, source TEXT NOT NULL, destination TEXT NOT NULL,
            "key" JSON NOT NULL, "row" JSON NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, "constraint" TEXT,
            entry BLOB)"#
        ),
        OwnTable::Keys => format!(
            r#"CREATE TABLE IF NOT EXISTS main.{IDEMPOTENCY} (idempotency_key TEXT NOT NULL, part INTEGER NOT NULL,
            request TEXT NOT NULL, outcome BLOB, made_at TEXT NOT NULL DEFAULT {NOW}, PRIMARY KEY (idempotency_key, part));
        CREATE INDEX IF NOT EXISTS main.{IDEMPOTENCY}_made_at ON {IDEMPOTENCY} (made_at)"#
        ),
        OwnTable::Loads => format!(
            "CREATE TABLE IF NOT EXISTS {} ({load} TEXT NOT NULL, {first} INTEGER NOT NULL, {} INTEGER NOT NULL, \
             PRIMARY KEY ({load}, {first}))",
            Mark::TABLE,
            Mark::END,
            load = Mark::LOAD,
            first = Mark::FIRST,
        ),
        OwnTable::Markers => format!(
            r#"CREATE TABLE IF NOT EXISTS main.{MARKERS} (move TEXT NOT NULL, "key" TEXT NOT NULL, batch TEXT NOT NULL,
            PRIMARY KEY (move, "key")); {}"#,
            index_markers()
        ),
        OwnTable::Batches => format!(
            "CREATE TABLE IF NOT EXISTS main.{BATCHES} (batch TEXT NOT NULL PRIMARY KEY, moved_at TEXT NOT NULL DEFAULT {NOW})"
        ),
    }
}

fn index_markers() -> String {
    format!("CREATE INDEX IF NOT EXISTS main.{MARKERS}_batch ON {MARKERS} (move, batch)")
}
