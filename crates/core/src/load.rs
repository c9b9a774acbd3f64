//! The port between a load and a database: many rows of one table, written by the database's own
//! bulk form.
//!
//! A [`Loader`] takes portions of rows whose values are still texts, as a file gave them. It writes
//! a portion whole or not at all. Why a single row is refused is not its work: a portion that is
//! refused, or what was left out of one, goes through a lane, where every row gets its own outcome.

mod column;
mod csv;
mod holds;
mod mark;
mod rows;

use std::sync::Arc;

use async_trait::async_trait;

pub use column::{LoadColumn, Means};
pub use csv::{CsvStyle, CsvText, other_delimiter};
pub use holds::Holds;
pub use mark::{Claim, Mark, Marks, Span};
pub use rows::{Field, Fields, Rows};

use crate::fault::Fault;
use crate::name::{Name, TableName};
use crate::shape::{Key, OnConflict, Op, Returning, Shape, ShapeParts};

/// What is to be loaded, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPlan {
    /// The table, which is there.
    pub table: TableName,
    /// The columns that every row gives a value for, in the order of its fields.
    pub columns: Box<[Name]>,
    /// What happens where a key is there already, be it in the table or earlier in the same load.
    pub on_conflict: OnConflict,
    /// What counts as a conflict, for [`OnConflict::Ignore`] and [`OnConflict::Update`].
    pub key: Key,
}

impl LoadPlan {
    /// A row of it as a write.
    pub fn shape(&self) -> Shape {
        Shape::new(ShapeParts {
            op: Op::Insert,
            table: self.table.clone(),
            columns: self.columns.clone(),
            key: self.key.clone(),
            on_conflict: self.on_conflict,
            returning: Returning::Nothing,
        })
    }
}

/// What became of a portion that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Rows that are new or changed.
    pub written: u64,
    /// Rows that were left out because their key was there already ([`OnConflict::Ignore`]).
    pub ignored: u64,
}

/// What became of a portion that was written without some of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Of the rows that were taken.
    pub loaded: Loaded,
    /// The places of those that were left out, in their order. They were not written, and their
    /// marks were not either.
    pub left: Vec<usize>,
}

/// Why a portion was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFault {
    /// Nothing of it was written because of what is in it, or because the bulk form cannot express
    /// it: each row is to be written by itself, and is told its own reason then.
    Refused(Fault),
    /// Nothing of it was written for no fault of its own (a deadlock, a connection that ended
    /// before the commit): the same portion may be tried again, on a new loader.
    Again(Fault),
    /// Nothing was written and nothing ever will be (no such table, no such column, no permission):
    /// the load ends.
    Hopeless(Fault),
    /// It cannot be known whether it was written: the connection died while the commit was under
    /// way. With a mark the database tells; without one the load ends.
    Unknown(Fault),
}

impl LoadFault {
    /// What the database said.
    pub fn fault(&self) -> &Fault {
        match self {
            Self::Refused(fault)
            | Self::Again(fault)
            | Self::Hopeless(fault)
            | Self::Unknown(fault) => fault,
        }
    }
}

/// One connection that loads, made for one [`LoadPlan`].
#[async_trait]
pub trait Loader: Send {
    /// Writes a portion, and the mark in the same transaction: all of it or nothing.
    ///
    /// **Not cancel safe**: a future dropped half-way leaves it unknown whether the portion was
    /// written; the loader must be dropped then too.
    ///
    /// # Errors
    /// [`LoadFault`], which says what may be done next. After [`LoadFault::Again`] and
    /// [`LoadFault::Unknown`] the loader is of no use any more.
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault>;

    /// As [`Loader::load`], but leaves out the rows that look as though they would be refused. That
    /// is a guess, and only one of speed: whoever asks writes the rows that were left out by
    /// themselves. What is taken is written in one transaction together with the marks of just
    /// those rows ([`Claim::spans`]).
    ///
    /// **Not cancel safe**, as [`Loader::load`].
    ///
    /// # Errors
    /// As [`Loader::load`]; [`LoadFault::Refused`] where the rows that are at fault could not be
    /// found.
    async fn filter(&mut self, _: &Rows, _: Option<&Claim<'_>>) -> Result<Filtered, LoadFault> {
        Err(LoadFault::Refused(Fault::internal(
            "this bulk form does not filter",
        )))
    }

    /// True if the fields of such records mean here what they would mean if each was written by
    /// itself, so that [`Loader::pass`] may be asked.
    fn passes(&self, _: &CsvStyle) -> bool {
        false
    }

    /// As [`Loader::load`], with records that the database itself splits into fields.
    ///
    /// **Not cancel safe**, as [`Loader::load`].
    ///
    /// # Errors
    /// As [`Loader::load`].
    async fn pass(&mut self, _: CsvText<'_>, _: Option<&Mark>) -> Result<Loaded, LoadFault> {
        Err(LoadFault::Refused(Fault::internal(
            "this bulk form reads no CSV",
        )))
    }

    /// Says good-bye to the database. Dropping a loader without it is allowed.
    async fn close(self: Box<Self>) {}
}

/// A database's own way to take many rows at once. Shared by all connections of a load.
#[async_trait]
pub trait Bulk: Send + Sync + 'static {
    /// The form's name, for the summary of a load: `COPY BINARY`, `LOAD DATA LOCAL` ...
    fn form(&self) -> &'static str;

    /// The most connections that can be of use. 1 for a database with one writer.
    fn most_loaders(&self) -> usize;

    /// The rows that a portion should have, where memory allows it.
    fn portion_rows(&self) -> usize {
        10_000
    }

    /// True if its loaders know [`Loader::filter`].
    fn filters(&self) -> bool {
        false
    }

    /// True if its loaders may know [`Loader::pass`].
    fn passes(&self) -> bool {
        false
    }

    /// The table's columns, in the table's order; a file without names is matched to those of them
    /// that a load can write. `None` if there is no such table. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn columns(&self, table: &TableName) -> Result<Option<Vec<LoadColumn>>, Fault>;

    /// Makes the table, or the columns that it lacks, for rows such as these; `declared`: what
    /// their file says of each column. False: rows that go one by one make what they need.
    ///
    /// **Not cancel safe**: a future dropped half-way leaves it unknown what was made.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`]; the database's own where it does not make it.
    async fn make(&self, _: &LoadPlan, _: &Rows, _: &[Option<Holds>]) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Opens a connection that loads. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`]; [`crate::FaultClass::Unsupported`] where the bulk form cannot
    /// do what the plan asks or the server does not allow it, so that rows are to go through a
    /// lane.
    async fn loader(&self, plan: &LoadPlan) -> Result<Box<dyn Loader>, Fault>;

    /// What was loaded before, for loads that can be continued; `None` on databases without
    /// transactions, which cannot write a portion and its mark together.
    fn marks(&self) -> Option<Arc<dyn Marks>> {
        None
    }
}
