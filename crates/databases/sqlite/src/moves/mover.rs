//! A connection that moves rows.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use tokio::time::Instant;
use windrow_core::bookkeeping::OwnAnswer;
use windrow_core::moves::{Destination, Part, PickMost, Picked, Refused, Rejected, Swept};
use windrow_core::{Fault, FaultClass, Mover, TableName};

use super::destination;
use super::letters::Letter;
use super::source::Source;
use super::work;
use super::work::{Numbers, Owned};
use crate::executor::writer::Writer;
use crate::fault::Failure;
use crate::own_tables;

/// The time for which a mover waits for other writers of the file before it fails.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// A thread with a connection of its own. When it is dropped, so is the connection, which rolls
/// back.
pub(super) struct SqliteMover {
    writer: Writer,
    source: Arc<Source>,
}

impl SqliteMover {
    pub(super) fn new(writer: Writer, source: Arc<Source>) -> Self {
        Self { writer, source }
    }

    /// Runs a job on the thread.
    async fn with<T: Send + 'static, E: Into<Fault>>(
        &self,
        work: impl FnOnce(&Connection, &Source) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Fault> {
        let source = self.source.clone();
        self.writer
            .run(move |database| {
                work(database.session()?.connection(), &source).map_err(Into::into)
            })
            .await
    }

    /// Begins a transaction, once no one else is writing.
    async fn begin(&self) -> Result<(), Fault> {
        let start = Instant::now();
        loop {
            match self.with(|connection, _| work::begin(connection)).await {
                Err(fault)
                    if fault.class == FaultClass::Conflict && start.elapsed() < LOCK_TIMEOUT => {}
                other => return other,
            }
        }
    }

    /// Runs a job in a transaction that has begun. If the job fails, the transaction ends.
    async fn within<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &Source) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Fault> {
        self.with(|connection, source| {
            work(connection, source).inspect_err(|_| {
                work::roll_back(connection).ok();
            })
        })
        .await
    }
}

#[async_trait]
impl Mover for SqliteMover {
    async fn sweep(&mut self, rows: usize, to: &Destination) -> Result<Swept, Fault> {
        self.begin().await?;
        let to = to.clone();
        self.with(move |connection, source| {
            let swept = work::pick(connection, source, rows).map_err(Fault::from);
            let swept = swept.and_then(|count| {
                if count == 0 {
                    return Ok(Swept::default());
                }
                let part = Owned {
                    to,
                    rows: Numbers::of(0..count),
                };
                let moved = work::transfer(connection, source, &[part]);
                moved.map_err(|refused| refused.fault)?;
                work::commit(connection)?;
                Ok(Swept {
                    rows: count as u64,
                    more: count >= rows,
                })
            });
            if !matches!(swept, Ok(Swept { rows: 1.., .. })) {
                work::roll_back(connection)?;
            }
            swept
        })
        .await
    }

    async fn pick(&mut self, most: PickMost) -> Result<Vec<Picked>, Fault> {
        self.begin().await?;
        self.within(move |connection, source| {
            let count = work::pick(connection, source, most.rows)?;
            if count == 0 {
                work::roll_back(connection).map_err(Failure::of_write)?;
                return Ok(Vec::new());
            }
            work::set_savepoint(connection)?;
            work::look(connection, source, count, most)
        })
        .await
    }

    async fn open(&mut self, table: &TableName, create: bool) -> Result<Destination, Fault> {
        let table = table.clone();
        self.with(move |connection, source| destination::open(connection, source, &table, create))
            .await
    }

    async fn transfer(&mut self, parts: &[Part<'_>]) -> Result<(), Refused> {
        let parts: Vec<Owned> = parts
            .iter()
            .map(|part| Owned {
                to: part.to.clone(),
                rows: Numbers::of(part.rows.iter().copied()),
            })
            .collect();
        let moved = self.with(move |connection, source| {
            Ok::<_, Fault>(work::transfer(connection, source, &parts))
        });
        match moved.await {
            Ok(moved) => moved,
            Err(fault) => Err(Refused { at: 0, fault }),
        }
    }

    async fn delete(&mut self, rows: &[usize]) -> Result<(), Fault> {
        let rows = Numbers::of(rows.iter().copied());
        self.with(move |connection, source| work::delete(connection, source, &rows))
            .await
    }

    async fn reject(&mut self, rows: &[Rejected<'_>]) -> Result<(), Fault> {
        let letters: Vec<Letter> = rows.iter().map(Letter::from).collect();
        self.with(move |connection, source| work::reject(connection, source, &letters))
            .await
    }

    async fn run(&mut self, sql: &str) -> Result<OwnAnswer, Fault> {
        let sql = sql.to_owned();
        self.with(move |connection, _| own_tables::run(connection, &sql).map_err(Failure::from))
            .await
    }

    async fn commit(&mut self) -> Result<(), Fault> {
        self.with(|connection, _| work::commit(connection)).await
    }

    async fn retreat(&mut self) -> Result<bool, Fault> {
        self.with(|connection, _| work::retreat(connection)).await
    }

    async fn rollback(&mut self) -> Result<(), Fault> {
        self.with(|connection, _| work::roll_back(connection)).await
    }

    async fn left(&mut self) -> Result<bool, Fault> {
        self.with(work::left).await
    }
}
