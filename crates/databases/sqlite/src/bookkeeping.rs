//! The tables of Windrow's own: how far a spool has been applied, what was refused, and which
//! requests were executed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, Row};
use windrow_core::bookkeeping::{DeadLetter, IDEMPOTENCY, KeptLetter, REJECTED};
use windrow_core::{Bookkeeping, Fault};

use super::executor::writer::Writer;
use super::fault::Failure;
use super::own_tables::{columns, make_dead_letters, make_keys, make_positions};

/// What a spool needs of SQLite.
#[derive(Debug)]
pub(super) struct SqliteBookkeeping {
    writer: Arc<Writer>,
}

impl SqliteBookkeeping {
    pub(super) fn new(writer: &Arc<Writer>) -> Self {
        Self {
            writer: writer.clone(),
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Fault> {
        self.writer
            .run(move |database| {
                work(database.session()?.connection()).map_err(Failure::into_fault)
            })
            .await
    }
}

#[async_trait]
impl Bookkeeping for SqliteBookkeeping {
    async fn prepare(&self) -> Result<(), Fault> {
        self.run(|connection| {
            make_positions(connection)?;
            make_dead_letters(connection)?;
            make_keys(connection)
        })
        .await
    }

    async fn prepare_keys(&self) -> Result<(), Fault> {
        self.run(make_keys).await
    }

    async fn forget_keys(&self, age: Duration, most: usize) -> Result<u64, Fault> {
        self.run(move |connection| forget(connection, age, most))
            .await
    }

    async fn letters(&self, after: u64, most: usize) -> Result<Vec<KeptLetter>, Fault> {
        self.run(move |connection| letters(connection, after, most))
            .await
    }
}

fn forget(connection: &Connection, age: Duration, most: usize) -> Result<u64, Failure> {
    if columns(connection, IDEMPOTENCY)?.is_empty() {
        return Ok(0);
    }
    let sql = format!(
        "DELETE FROM main.{IDEMPOTENCY} WHERE rowid IN (SELECT rowid FROM main.{IDEMPOTENCY} \
         WHERE made_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?1) ORDER BY made_at LIMIT ?2)"
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let age = format!("-{} seconds", age.as_secs());
    let forgotten = connection.execute(&sql, (age, most))?;
    Ok(forgotten as u64)
}

fn letters(connection: &Connection, after: u64, most: usize) -> Result<Vec<KeptLetter>, Failure> {
    if columns(connection, REJECTED)?.is_empty() {
        return Ok(Vec::new());
    }
    // One of an older program has other columns.
    make_dead_letters(connection)?;
    let sql = format!(
        r#"SELECT id, rejected_at, source, destination, "key", "row", code, message, "constraint", entry
            FROM main.{REJECTED} WHERE id > ?1 ORDER BY id LIMIT ?2"#
    );
    let mut ask = connection.prepare(&sql)?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let letters = ask.query_map([after, most], letter)?;
    Ok(letters.collect::<rusqlite::Result<_>>()?)
}

fn letter(row: &Row<'_>) -> rusqlite::Result<KeptLetter> {
    Ok(KeptLetter {
        id: row.get::<_, i64>(0)?.unsigned_abs(),
        rejected_at: row.get(1)?,
        letter: DeadLetter {
            source: row.get(2)?,
            destination: row.get(3)?,
            key: row.get(4)?,
            row: row.get(5)?,
            code: row.get(6)?,
            message: row.get(7)?,
            constraint: row.get(8)?,
            entry: row.get::<_, Option<Vec<u8>>>(9)?.map(Vec::into_boxed_slice),
        },
    })
}
