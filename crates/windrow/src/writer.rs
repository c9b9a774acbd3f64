//! A database, opened by URL, with its settings.

use std::time::Duration;

use prometheus_client::registry::Registry;
use windrow_core::{Budget, Fault, Intake, LaneStatus, Limits, Op, Secret};
use windrow_database::{Options, Synchronous};
use windrow_lanes::{Lane, LaneMetrics};

use crate::databases;
use crate::lanes::{LANE_CAPACITY, ReadLane};
use crate::statement::Statement;
use crate::table::Table;

/// The memory that accepted and unanswered writes may take, unless set: 256 MiB.
pub(crate) const DEFAULT_MEMORY: usize = 256 << 20;

/// Settings of a [`Writer`] before it is opened. All are optional.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before open()"]
pub struct WriterBuilder {
    url: Secret,
    limits: Limits,
    options: Options,
    memory: usize,
}

impl WriterBuilder {
    /// Sets the most rows in one batch. By default Windrow finds the best number at run time.
    pub fn rows_per_batch(mut self, rows: usize) -> Self {
        self.limits.batch_rows = Some(rows);
        self
    }

    /// Sets the most bytes of values in one batch. Default 4 MiB.
    pub fn bytes_per_batch(mut self, bytes: usize) -> Self {
        self.limits.batch_bytes = bytes;
        self
    }

    /// Sets the most connections that write at once. By default Windrow finds the best number at
    /// run time.
    pub fn flights(mut self, flights: usize) -> Self {
        self.limits.flights = Some(flights);
        self
    }

    /// Sets the bytes that accepted and unanswered writes may take. Beyond that, writing waits.
    /// Default 256 MiB.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the time that a row may be held back for others to join it, although a connection is
    /// free. Default zero: never.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.limits.max_wait = wait;
        self
    }

    /// Sets the time that rows wait for a database that cannot be reached. Default 5 s.
    pub fn away_wait(mut self, wait: Duration) -> Self {
        self.limits.away_wait = wait;
        self
    }

    /// Sets whether missing tables are created from the rows, and get columns as later rows contain
    /// them. Default no.
    pub fn create_tables(mut self, create: bool) -> Self {
        self.options.create_tables = create;
        self
    }

    /// Sets whether, with [`WriterBuilder::create_tables`], tables that Windrow did not create get
    /// columns too. Default no.
    pub fn extend_tables(mut self, extend: bool) -> Self {
        self.options.extend_tables = extend;
        self
    }

    /// Sets how often SQLite syncs the file. Default [`Synchronous::Full`].
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.options.synchronous = synchronous;
        self
    }

    /// Opens the database. It is no error if the database cannot be reached yet: rows wait for it.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if the URL is invalid or names no known database.
    pub async fn open(self) -> Result<Writer, Fault> {
        let sink = databases::open(self.url.reveal(), &self.options).await?;
        let budget = Budget::new(self.memory);
        let (intake, arrivals) = Intake::channel(budget.clone(), LANE_CAPACITY);
        let metrics = LaneMetrics::register(&mut Registry::default());
        let reads = ReadLane::start(&*sink, &self.limits, &budget, &metrics);
        let lane = Lane::start(sink, self.limits, arrivals, metrics, "default".into());
        Ok(Writer {
            intake,
            lane,
            reads,
        })
    }
}

/// A database that rows are written to. Rows of all tables and tasks share batches.
#[derive(Debug)]
pub struct Writer {
    intake: Intake,
    lane: Lane,
    reads: Option<ReadLane>,
}

impl Writer {
    /// Returns settings for a database: `sqlite:PATH`, `postgres://USER@HOST/DATABASE`, and others
    /// that `windrow databases` lists.
    pub fn builder(url: impl Into<Secret>) -> WriterBuilder {
        WriterBuilder {
            url: url.into(),
            limits: Limits::default(),
            options: Options::default(),
            memory: DEFAULT_MEMORY,
        }
    }

    /// Opens a database with default settings.
    ///
    /// # Errors
    /// As [`WriterBuilder::open`].
    pub async fn open(url: impl Into<Secret>) -> Result<Self, Fault> {
        Self::builder(url).open().await
    }

    /// Returns a table to insert into: the short form of [`Writer::table`] for plain inserts.
    ///
    /// # Errors
    /// As [`Statement::insert`].
    pub fn insert<C: AsRef<str>>(
        &self,
        table: &str,
        columns: impl IntoIterator<Item = C>,
    ) -> Result<Table, Fault> {
        Ok(self.table(Statement::insert(table, columns)?))
    }

    /// Returns a table to write to by a statement.
    #[must_use]
    pub fn table(&self, statement: Statement) -> Table {
        let shape = statement.into_shape();
        let reads = self.reads.as_ref().filter(|_| shape.op == Op::Get);
        let intake = reads.map_or(&self.intake, ReadLane::intake);
        Table::new(intake.clone(), shape)
    }

    /// Returns the lane's current state: waiting writes, batches under way, the best limits found,
    /// and counters. Cheap.
    #[must_use]
    pub fn status(&self) -> LaneStatus {
        self.lane.status()
    }

    /// Finishes everything that was accepted and closes the database. Rows that are written later
    /// through a [`Table`] that still exists fail as cancelled. Dropping a writer instead also ends
    /// its connections once everything that was accepted is finished, but does not wait for it.
    pub async fn close(self) {
        if let Some(reads) = self.reads {
            reads.shutdown().await;
        }
        self.lane.shutdown().await;
    }
}
