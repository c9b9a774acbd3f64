//! The port between a load and a database: many rows of one table, written by the database's own
//! bulk form.
//!
//! A [`Loader`] takes portions of rows whose values are still texts, as a file gave them. It writes
//! a portion whole, without the rows that look bad, or not at all. It does not decide why a row is
//! refused: rows that were left out go through a lane, where every row gets its own outcome.

mod column;
mod contents;
mod csv;
mod holds;
mod mark;
mod rows;
mod skips;

use std::sync::Arc;

use async_trait::async_trait;

pub use column::{LoadColumn, Means};
pub use contents::Contents;
pub use csv::{CsvStyle, CsvText, other_delimiter};
pub use holds::Holds;
pub use mark::{Claim, Mark, Marks, Span};
pub use rows::{Field, Fields, Rows};
pub use skips::FormSkips;

use crate::fault::Fault;
use crate::name::{Name, TableName};
use crate::shape::{Key, OnConflict, Op, Returning, Shape, ShapeParts};

/// The table and columns that a load fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPlan {
    /// The table, which is there.
    pub table: TableName,
    /// The columns that every row gives a value for, in the order of its fields.
    pub columns: Box<[Name]>,
    /// The action on a row whose key exists already, in the table or earlier in the same load.
    pub on_conflict: OnConflict,
    /// The key that counts as a conflict, for [`OnConflict::Ignore`] and [`OnConflict::Update`].
    pub key: Key,
}

impl LoadPlan {
    /// Returns the shape of a write of one row.
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

/// The counts of a portion that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Rows that are new or changed.
    pub written: u64,
    /// Rows that were left out because their key was there already ([`OnConflict::Ignore`]).
    pub ignored: u64,
}

/// The outcome of a portion that was written, perhaps without some of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Of the rows that were taken.
    pub loaded: Loaded,
    /// The places of the rows that were left out, in their order. Neither these rows nor their
    /// marks were written.
    pub left: Vec<usize>,
}

/// The reason why a portion was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFault {
    /// Nothing was written because of a row's values, or because the bulk form cannot express them.
    /// Another form may take the rows; written by itself, each row gets its own reason.
    Refused(Fault),
    /// Nothing was written, for a reason outside of the portion (a deadlock, a connection that
    /// ended before the commit): the same portion may be tried again, on a new loader.
    Again(Fault),
    /// Nothing was written and nothing ever will be (no such table, no such column, no permission):
    /// the load ends.
    Hopeless(Fault),
    /// The connection died while the commit was under way, so the portion may be written or not.
    /// The mark of the portion shows which; without a mark the load ends.
    Unknown(Fault),
}

impl LoadFault {
    /// Returns the database's own fault.
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
    /// Writes a portion in one transaction, together with the marks of just the rows that were
    /// written ([`Claim::spans`]).
    ///
    /// **Not cancel safe**: a future dropped half-way leaves it unknown whether the portion was
    /// written; the loader must be dropped then too.
    ///
    /// # Errors
    /// [`LoadFault`], which says what may be done next; [`LoadFault::Refused`] also if the rows at
    /// fault of [`Contents::GoodRows`] could not be found. After [`LoadFault::Again`] and
    /// [`LoadFault::Unknown`] the loader is of no use any more.
    async fn write(
        &mut self,
        contents: Contents<'_>,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault>;

    /// Returns true if [`Contents::Csv`] may be such records: the database reads their fields as
    /// it reads the values of a single write.
    fn passes(&self, _: &CsvStyle) -> bool {
        false
    }

    /// Closes the connection in order. A loader may be dropped without it.
    async fn close(self: Box<Self>) {}
}

/// A database's bulk form. Shared by all connections of a load.
#[async_trait]
pub trait Bulk: Send + Sync + 'static {
    /// Returns the form's name for the summary of a load: `COPY`, `LOAD DATA LOCAL` ...
    fn form(&self) -> &'static str;

    /// Returns the largest useful number of connections: 1 for a database with one writer.
    fn most_loaders(&self) -> usize;

    /// Returns the number of rows that a portion should have, if memory allows it.
    fn portion_rows(&self) -> usize {
        10_000
    }

    /// Returns true if its loaders may take records that are not split ([`Contents::Csv`]).
    fn passes(&self) -> bool {
        false
    }

    /// Returns the table's columns, in the table's order; `None` if there is no such table. A file
    /// without names is matched to those that a load can write. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn columns(&self, table: &TableName) -> Result<Option<Vec<LoadColumn>>, Fault>;

    /// Creates the table, or the columns that it lacks, for rows such as these; `declared`: the
    /// type that their file declares for each column. Returns false if rows that go one by one
    /// create what they need.
    ///
    /// **Not cancel safe**: a future dropped half-way leaves it unknown what was made.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`]; the database's own fault if it refuses.
    async fn make(&self, _: &LoadPlan, _: &Rows, _: &[Option<Holds>]) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Opens a connection that loads. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`]; [`crate::FaultClass::Unsupported`] if the bulk form cannot do
    /// what the plan asks or the server does not allow it: all rows are to go through a lane then.
    async fn loader(&self, plan: &LoadPlan) -> Result<Box<dyn Loader>, Fault>;

    /// Returns the marks of loads that can be continued; `None` for databases without transactions,
    /// which cannot write a portion and its mark together.
    fn marks(&self) -> Option<Arc<dyn Marks>> {
        None
    }
}
