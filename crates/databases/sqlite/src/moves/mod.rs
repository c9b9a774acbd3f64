//! Moves rows of a table that serves as a queue to their final tables in the same file, or reads
//! them out.
//!
//! **SQLite locks no rows.** Movers do not meet because a file can have only one write transaction
//! (BEGIN IMMEDIATE), which lasts from picking rows to deleting them: other movers wait for it, and
//! so does every program that writes to the file. If a mover dies, its transaction is rolled back.
//! So a batch across databases should be as small as it can be without being slow.
//!
//! A mover has a connection of its own, because its transaction lasts for several calls. The rows
//! that it holds are named by their row numbers (or, WITHOUT ROWID, by their primary keys), kept in
//! a temporary table with their places.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | the queue: its tables, its connections |
//! | `facts` | describes tables and counts rows before a move |
//! | `effects` | what else changes if rows are deleted |
//! | `source` | the source as a mover uses it: its statements |
//! | `work` | executes a mover's steps on its connection |
//! | `mover` | a connection that moves rows |
//! | `destination` | looks up and creates final tables |
//! | `letters` | dead letters |
//! | `text` | parts that several statements have in common |

mod destination;
mod effects;
mod facts;
mod letters;
mod mover;
mod source;
mod text;
mod work;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use windrow_bookkeeping::create_all;
use windrow_core::moves::{NameLimit, TableFacts};
use windrow_core::name::MAX_NAME_BYTES;
use windrow_core::{Fault, MovePlan, Mover, Moves, TableName};
use windrow_database::Options;

use self::mover::SqliteMover;
use super::executor::writer::Writer;
use super::location::Location;
use super::own_tables::SqliteBookkeeping;

/// A file whose tables can be queues.
#[derive(Debug)]
pub(super) struct SqliteMoves {
    /// The sink's own connection, for jobs that need no transaction.
    writer: Arc<Writer>,
    location: Location,
    options: Options,
}

impl SqliteMoves {
    /// Returns the queue; `None` for a database in memory, which only one connection can see.
    pub(super) fn new(
        writer: &Arc<Writer>,
        location: &Location,
        options: &Options,
    ) -> Option<Self> {
        matches!(location, Location::File { .. }).then(|| Self {
            writer: writer.clone(),
            location: location.clone(),
            options: options.clone(),
        })
    }

    fn place_of_file(&self) -> Result<String, Fault> {
        let Location::File { path, .. } = &self.location else {
            return Err(Fault::internal("a database in memory is no queue"));
        };
        let path: PathBuf = path.canonicalize().map_err(|error| {
            Fault::unavailable(format!("{} cannot be found: {error}", self.location))
        })?;
        Ok(format!("sqlite {path:?}"))
    }
}

#[async_trait]
impl Moves for SqliteMoves {
    async fn place(&self) -> Result<String, Fault> {
        self.place_of_file()
    }

    async fn name_limit(&self) -> Result<NameLimit, Fault> {
        Ok(NameLimit::Caseless(MAX_NAME_BYTES))
    }

    fn most_movers(&self) -> usize {
        1
    }

    async fn describe(&self, table: &TableName) -> Result<Option<TableFacts>, Fault> {
        let (table, place) = (table.clone(), self.place_of_file()?);
        self.writer
            .run(move |database| {
                let connection = database.session()?.connection();
                let facts = facts::read(connection, &table)?;
                Ok(facts.map(|facts| facts.outside(&place)))
            })
            .await
    }

    async fn survey(
        &self,
        plan: &MovePlan,
        most: usize,
    ) -> Result<Vec<(Option<Box<str>>, u64)>, Fault> {
        let plan = plan.clone();
        self.writer
            .run(move |database| {
                let connection = database.session()?.connection();
                Ok(facts::count(connection, &plan, most)?)
            })
            .await
    }

    async fn prepare(&self, plan: &MovePlan) -> Result<(), Fault> {
        let writer = self.writer.clone();
        create_all(&SqliteBookkeeping { writer }, plan.own_tables()).await
    }

    async fn mover(&self, plan: &MovePlan) -> Result<Box<dyn Mover>, Fault> {
        let writer = Writer::spawn(self.location.clone(), self.options.clone())?;
        let plan = plan.clone();
        let source = writer
            .run(move |database| {
                let connection = database.session()?.connection();
                source::Source::read(connection, &plan)
            })
            .await?;
        Ok(Box::new(SqliteMover::new(writer, Arc::new(source))))
    }
}
