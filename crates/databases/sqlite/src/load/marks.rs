//! Stores marks of loaded portions in a table.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, params};
use windrow_bookkeeping::create_all;
use windrow_core::bookkeeping::OwnTable;
use windrow_core::{Fault, Mark, Marks, Span};

use super::fault::plain;
use super::transaction::{roll_back, say};
use crate::executor::writer::Writer;
use crate::own_tables::SqliteBookkeeping;

/// The table of marks.
pub(super) struct SqliteMarks {
    writer: Arc<Writer>,
}

impl SqliteMarks {
    pub(super) fn new(writer: &Arc<Writer>) -> Self {
        Self {
            writer: writer.clone(),
        }
    }
}

#[async_trait]
impl Marks for SqliteMarks {
    async fn prepare(&self) -> Result<(), Fault> {
        let tables = SqliteBookkeeping::new(&self.writer);
        create_all(&tables, &[OwnTable::Loads]).await
    }

    async fn read(&self, load: &str) -> Result<Vec<Span>, Fault> {
        let load = load.to_owned();
        self.writer
            .run(move |database| {
                let connection = database.session()?.connection();
                read(connection, &load).map_err(plain)
            })
            .await
    }

    async fn merge(&self, mark: &Mark) -> Result<(), Fault> {
        let mark = mark.clone();
        self.writer
            .run(move |database| {
                let connection = database.session()?.connection();
                let merged = merge(connection, &mark).map_err(plain);
                if merged.is_err() && !roll_back(connection) {
                    database.discard();
                }
                merged
            })
            .await
    }
}

/// Writes a mark, in the transaction that is open.
pub(super) fn insert(connection: &Connection, load: &str, span: Span) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO {} ({}, {}, {}) VALUES (?1, ?2, ?3)",
        Mark::TABLE,
        Mark::LOAD,
        Mark::FIRST,
        Mark::END
    );
    let (first, end) = (number(span.first), number(span.end));
    let mut insert = connection.prepare_cached(&sql)?;
    insert.execute(params![load, first, end]).map(|_| ())
}

fn read(connection: &Connection, load: &str) -> rusqlite::Result<Vec<Span>> {
    let sql = format!(
        "SELECT {first}, {} FROM {} WHERE {} = ?1 ORDER BY {first}",
        Mark::END,
        Mark::TABLE,
        Mark::LOAD,
        first = Mark::FIRST,
    );
    let mut ask = connection.prepare_cached(&sql)?;
    let span = |row: &rusqlite::Row<'_>| {
        Ok(Span {
            first: row.get::<_, i64>(0)?.unsigned_abs(),
            end: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    };
    ask.query_map([load], span)?.collect()
}

fn merge(connection: &Connection, mark: &Mark) -> rusqlite::Result<()> {
    say(connection, "BEGIN IMMEDIATE")?;
    let sql = format!(
        "DELETE FROM {} WHERE {} = ?1 AND {} >= ?2 AND {} <= ?3",
        Mark::TABLE,
        Mark::LOAD,
        Mark::FIRST,
        Mark::END
    );
    let (first, end) = (number(mark.span.first), number(mark.span.end));
    connection
        .prepare_cached(&sql)?
        .execute(params![&*mark.load, first, end])?;
    insert(connection, &mark.load, mark.span)?;
    say(connection, "COMMIT")
}

fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
