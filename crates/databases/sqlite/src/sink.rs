//! The sink: hands out executors that share one writer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;
use windrow_core::sink::Purpose;
use windrow_core::{
    Bookkeeping, Bulk, Executor, Fault, FaultClass, Inventory, Limitation, Moves, Profile, Promise,
    Sink, Standing,
};
use windrow_database::Options;

use super::executor::SqliteExecutor;
use super::executor::writer::{Database, Writer};
use super::fault::Failure;
use super::inventory::SqliteInventory;
use super::load::SqliteBulk;
use super::location::Location;
use super::moves::SqliteMoves;
use super::own_tables::SqliteBookkeeping;

/// The time limit of a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The abilities of SQLite.
pub(super) const PROFILE: Profile = Profile {
    name: "SQLite",
    transactional: true,
    flights: 1,
    batch_rows: 50_000,
    limitations: &[Limitation {
        promise: Promise::Locks,
        why: "While another process holds the file's lock, all writes wait for it together.",
    }],
};

/// A SQLite database. When the sink and all its executors are dropped, the last one waits for the
/// writer to end.
#[derive(Debug)]
pub(super) struct SqliteSink {
    writer: Arc<Writer>,
    /// A second thread with a connection for reads; `None` for a database in memory, which has one
    /// connection.
    reader: Option<Arc<Writer>>,
    location: Location,
    options: Options,
    profile: Profile,
}

impl SqliteSink {
    /// Starts the writer and has it open the database.
    ///
    /// # Errors
    /// The database cannot be opened. A locked database is no error.
    pub(super) async fn open(location: Location, options: &Options) -> Result<Self, Fault> {
        let start = || Writer::spawn(location.clone(), options.clone()).map(Arc::new);
        let sink = Self {
            writer: start()?,
            reader: match location {
                Location::File { .. } => Some(start()?),
                Location::Memory => None,
            },
            location,
            options: options.clone(),
            profile: PROFILE,
        };
        match sink.ready().await {
            Err(fault) if fault.class != FaultClass::Unavailable => Err(fault),
            _ => Ok(sink),
        }
    }

    async fn ready(&self) -> Result<(), Fault> {
        self.writer.run(open).await
    }
}

fn open(database: &mut Database) -> Result<(), Fault> {
    database.session().map(|_| ())
}

#[async_trait]
impl Sink for SqliteSink {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    // A lock of another process blocks all writers of the file. A unit by itself would wait as
    // long, so no verdict is `Verdict::WaitsForLock`.
    async fn connect(&self, _purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        self.ready().await?;
        Ok(Box::new(SqliteExecutor::new(self.writer.clone())))
    }
}

/// The sink of reads. With a write-ahead log, reads wait for no writer.
struct ReadingSink(Arc<Writer>);

#[async_trait]
impl Sink for ReadingSink {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    async fn connect(&self, _purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        self.0.run(open).await?;
        Ok(Box::new(SqliteExecutor::new(Arc::clone(&self.0))))
    }
}

#[async_trait]
impl windrow_core::Database for SqliteSink {
    async fn ping(&self) -> Result<(), Fault> {
        let reader = self.reader.as_ref().unwrap_or(&self.writer);
        match timeout(PING_TIMEOUT, reader.run(alive)).await {
            Ok(answer) => answer,
            Err(_) => Err(Fault::unavailable(
                "SQLite gave no sign of life within 5 seconds",
            )),
        }
    }

    fn reads(&self) -> Option<Arc<dyn Sink>> {
        let reader = self.reader.as_ref()?;
        Some(Arc::new(ReadingSink(Arc::clone(reader))))
    }

    fn bulk(&self) -> Option<Arc<dyn Bulk>> {
        Some(Arc::new(SqliteBulk::new(&self.writer)))
    }

    fn moves(&self) -> Option<Arc<dyn Moves>> {
        let queue = SqliteMoves::new(&self.writer, &self.location, &self.options)?;
        Some(Arc::new(queue))
    }

    fn bookkeeping(&self) -> Option<Arc<dyn Bookkeeping>> {
        let writer = self.writer.clone();
        Some(Arc::new(SqliteBookkeeping { writer }))
    }

    fn inventory(&self) -> Option<Arc<dyn Inventory>> {
        let reader = match self.location {
            // A thread of its own, so that a long query blocks neither writes nor reads by key.
            Location::File { .. } => {
                let spawned = Writer::spawn(self.location.clone(), self.options.clone());
                spawned.ok().map(Arc::new)
            }
            Location::Memory => None,
        };
        let reader = reader.unwrap_or_else(|| self.writer.clone());
        Some(Arc::new(SqliteInventory::new(&self.writer, reader)))
    }

    fn standings(&self) -> Vec<Standing> {
        self.writer.standings().all()
    }
}

fn alive(database: &mut Database) -> Result<(), Fault> {
    database
        .session()?
        .connection()
        .query_row("SELECT 1", [], |_| Ok(()))
        .map_err(|e| {
            let failure = Failure::from(e);
            Fault::unavailable(failure.fault.message)
        })
}
