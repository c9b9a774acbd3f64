//! The port between a move and the database that holds the pending rows: a table that is used as a
//! queue.
//!
//! A [`Mover`] is one connection. It locks rows of the source that nobody else holds
//! ([`Mover::pick`]), brings them into their destinations or takes them out, and commits. Locks are
//! what keeps movers of all processes apart: rows that somebody holds are passed over, and a mover
//! that dies lets go of what it held.
//!
//! **Within one database** ([`MovePlan::across`] is false) rows go by statements of the server:
//! [`Mover::sweep`] where all of them have one destination, else [`Mover::pick`], [`Mover::open`]
//! and [`Mover::transfer`]. Which rows are refused is found by the coordinator, by halving; they go
//! to the dead letters by [`Mover::reject`].
//!
//! **Across databases** the rows are read by [`Mover::pick`] and written elsewhere, each together
//! with a marker ([`Moved`]), while the source's transaction stays open; then they are deleted
//! here, and the batch is noted in the same transaction ([`Mover::note`]). A mover that meets a row
//! whose marker is there already asks [`Mover::noted`]: a batch that is not noted has never been
//! committed here, so this very row has been written, and only goes; one that is noted has deleted
//! its rows, so this is another row with the same key, and the marker is old.

mod bookkeeping;
mod moved;
mod table;
mod takes;

use async_trait::async_trait;

pub use crate::bookkeeping::REJECTED;
pub use bookkeeping::BATCHES;
pub use moved::Moved;
pub use table::{Destination, NameLimit, Referrer, TableFacts, is_own};
pub use takes::Takes;

use crate::fault::{Fault, FaultClass};
use crate::name::{Name, TableName};
use crate::value::Value;

/// Which rows are to be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovePlan {
    /// The table that they are in; there is one of that name.
    pub source: TableName,
    /// The columns that tell its rows apart ([`TableFacts::tells_apart`]). Rows are taken in their
    /// order.
    pub key: Box<[Name]>,
    /// The columns that name a row where another database has to know it again: those of
    /// [`TableFacts::naming`], whatever key was asked for.
    pub names: Box<[Name]>,
    /// The columns that are brought to the destination, in their order: all that are not
    /// generated.
    pub columns: Box<[Name]>,
    /// The column whose value, as text, says where a row goes.
    pub route: Option<Name>,
    /// A condition in the database's SQL, as the operator wrote it: only rows that meet it are
    /// moved. It is put into parentheses, and trusted.
    pub filter: Option<Box<str>>,
    /// The destination is another database: [`Mover::pick`] reads the rows.
    pub across: bool,
    /// The destination is of the source's own kind: what other databases have no form of (arrays,
    /// for example) is read in the database's own spelling as [`Value::Text`], which its like
    /// takes in without loss.
    pub alike: bool,
}

/// How much a batch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickMost {
    /// Rows, at least one.
    pub rows: usize,
    /// Bytes of values that are read ([`MovePlan::across`]); a single row may pass it. What would
    /// pass it is not locked, or let go of with the transaction.
    pub bytes: usize,
}

/// A row of the source that is locked until the transaction ends. It is named by its place in what
/// [`Mover::pick`] gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picked {
    /// The value of [`MovePlan::route`] as the database writes it as text; `None`: NULL, or no
    /// route is asked for.
    pub route: Option<Box<str>>,
    /// The values of [`MovePlan::names`] as an array of JSON. Always the same for the same row,
    /// and never that of another: values of different types are written differently. Empty
    /// within one database.
    pub name: Box<str>,
    /// The values of [`MovePlan::columns`]. Empty within one database.
    pub values: Box<[Value]>,
    /// Why it cannot be brought to any destination: its route is no text, or (across databases) one
    /// of its values has no form outside of its database.
    pub unfit: Option<Fault>,
}

impl Picked {
    /// The reason of a row whose route is no text in UTF-8: it names no table.
    pub fn nameless() -> Fault {
        let message = "the value that decides where the row goes is a text that is not UTF-8";
        Fault::new(FaultClass::Invalid, "42602", message)
    }
}

/// What became of a batch that the server moved by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Rows that were moved; 0: there are none that nobody holds.
    pub rows: u64,
    /// There may be others that nobody holds. False: there was none when the rows were locked.
    pub more: bool,
}

/// Picked rows that have one destination.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Where they go.
    pub to: &'a Destination,
    /// Which, by their places in what [`Mover::pick`] gave; each at most once in a transaction.
    pub rows: &'a [usize],
}

/// Why parts were not moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The place of the part that failed.
    pub at: usize,
    /// What the database said of it.
    pub fault: Fault,
}

/// A picked row that goes to the dead letters.
#[derive(Clone, Copy, Debug)]
pub struct Rejected<'a> {
    /// Its place in what [`Mover::pick`] gave.
    pub row: usize,
    /// Where it should have gone; empty if its route makes no name.
    pub destination: &'a str,
    /// Why it did not.
    pub fault: &'a Fault,
}

/// A database that can hold pending rows. Shared by all connections of a move.
#[async_trait]
pub trait Moves: Send + Sync + 'static {
    /// What tells this database apart from all others, copies of it included: two queues that say
    /// the same lead to the same tables, and rows are moved by statements of the server, with
    /// the rights of the source's role. Never shown. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn place(&self) -> Result<String, Fault>;

    /// Which names its tables can have. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn name_limit(&self) -> Result<NameLimit, Fault>;

    /// The rows of a batch within the database, unless the user says otherwise.
    fn batch_rows(&self) -> usize {
        10_000
    }

    /// The most connections that can be of use. 1 for a database with one writer.
    fn most_movers(&self) -> usize {
        64
    }

    /// What a table is like; `None` if there is none of that name. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`]; [`FaultClass::Unsupported`] if it is no table (a view, a
    /// foreign table).
    async fn describe(&self, table: &TableName) -> Result<Option<TableFacts>, Fault>;

    /// How many rows are to be moved, by the value of the route (one entry with `None` where no
    /// route is asked for), at most `most` values, in the order of the values. Changes and
    /// locks nothing. Cancel safe.
    ///
    /// # Errors
    /// What the database says, for example of the filter.
    async fn survey(
        &self,
        plan: &MovePlan,
        most: usize,
    ) -> Result<Vec<(Option<Box<str>>, u64)>, Fault>;

    /// Makes [`REJECTED`] if it is not there, and [`BATCHES`] for a plan across databases. Safe to
    /// run at the same time elsewhere. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn prepare(&self, plan: &MovePlan) -> Result<(), Fault>;

    /// Of the database as a destination: gives the table of markers ([`Moved`]), which is there, an
    /// index by which those of a batch are found without looking at others; also to one that an
    /// earlier version made. Nothing happens where it has one, or where the role may not. Safe
    /// to run at the same time elsewhere. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn index_markers(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Of the database as a destination: whether its table of markers, which is there, holds some
    /// of this move whose keys do not begin with `tag`. Rows that they stand for would not be
    /// known again. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn has_strange_markers(&self, relocation: &str, tag: &str) -> Result<bool, Fault> {
        let _ = (relocation, tag);
        Ok(false)
    }

    /// Opens a connection that moves. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn mover(&self, plan: &MovePlan) -> Result<Box<dyn Mover>, Fault>;

    /// Opens what tells of new rows; `None` where the database has no such thing, so that it is
    /// only asked from time to time. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn news(&self, plan: &MovePlan) -> Result<Option<Box<dyn News>>, Fault> {
        let _ = plan;
        Ok(None)
    }
}

/// Tells of new rows. It may tell of what is none of the move's, and must not be relied on alone.
#[async_trait]
pub trait News: Send {
    /// Ends once something has come since the last call, or since it was opened. Cancel safe: what
    /// came is told by the next call.
    ///
    /// # Errors
    /// The connection is lost; this one is of no use any more.
    async fn wait(&mut self) -> Result<(), Fault>;
}

/// One connection that moves rows.
///
/// No method is cancel safe: a mover whose future was dropped half-way must be dropped, which rolls
/// back. An error of the classes [`FaultClass::Unavailable`],
/// [`FaultClass::Conflict`] and [`FaultClass::Unknown`] ends the transaction and the
/// mover: it is dropped, and a new one goes on. Nothing is lost or doubled then, whether or not the
/// commit took place.
#[async_trait]
pub trait Mover: Send {
    /// A whole batch in one transaction, for plans without a route: locks up to `rows` rows, brings
    /// them to `to`, deletes them and commits.
    ///
    /// # Errors
    /// What the database says; nothing was moved then, no transaction is open, and the coordinator
    /// looks for the row by [`Mover::pick`] and [`Mover::transfer`]. It is an error too if not
    /// every row came to the destination.
    async fn sweep(&mut self, rows: usize, to: &Destination) -> Result<Swept, Fault>;

    /// Begins a transaction, and locks rows that meet the plan's filter and that nobody else holds,
    /// in the order of the key. None: there are no others, and no transaction is open.
    ///
    /// # Errors
    /// What the database says; no transaction is open then.
    async fn pick(&mut self, most: PickMost) -> Result<Vec<Picked>, Fault>;

    /// Looks a destination up, and makes it like the source if it is not there and `create` says
    /// so: with the source's columns, defaults, indexes and constraints, but without what must
    /// not be shared (generators of numbers). Called within the transaction or before it; the rows
    /// that are picked stay locked. Whether what was made stays if the transaction is rolled back
    /// is left to the database.
    ///
    /// # Errors
    /// [`FaultClass::NoTable`]; [`FaultClass::NoColumn`] if it lacks columns, and
    /// [`FaultClass::NotNull`] if it requires others; the message names them
    /// ([`Destination::new`]); [`FaultClass::Invalid`] if it is the source itself; what
    /// the database says when it is made. The transaction is as it was before.
    async fn open(&mut self, table: &TableName, create: bool) -> Result<Destination, Fault>;

    /// Brings picked rows to their destinations and deletes them from the source. All parts or
    /// none. Constraints that are checked at the commit are checked here as far as the database
    /// can be told to.
    ///
    /// # Errors
    /// [`Refused`]; the transaction is as it was before the call. It is an error too if a part
    /// brings fewer rows to its destination than it has: a trigger or a rule leaves them out
    /// ([`TableFacts::left_out`]).
    async fn transfer(&mut self, parts: &[Part<'_>]) -> Result<(), Refused>;

    /// Deletes picked rows from the source: they have been written elsewhere. All of them or none.
    ///
    /// # Errors
    /// What the database says; also if one of them was not deleted.
    async fn delete(&mut self, rows: &[usize]) -> Result<(), Fault>;

    /// Deletes picked rows from the source and puts them into [`REJECTED`]. All of them or none.
    ///
    /// # Errors
    /// What the database says; also if one of them was not deleted.
    async fn reject(&mut self, rows: &[Rejected<'_>]) -> Result<(), Fault>;

    /// Adds a batch to [`BATCHES`], within the transaction.
    ///
    /// # Errors
    /// What the database says.
    async fn note(&mut self, batch: &str) -> Result<(), Fault>;

    /// Of each batch, whether it is in [`BATCHES`], as committed by now. Called within the
    /// transaction.
    ///
    /// # Errors
    /// What the database says.
    async fn noted(&mut self, batches: &[Box<str>]) -> Result<Vec<bool>, Fault>;

    /// Some of the batches that are in [`BATCHES`], at most `most`, the oldest first: also those of
    /// other moves. Called outside of a transaction.
    ///
    /// # Errors
    /// What the database says.
    async fn batches(&mut self, most: usize) -> Result<Vec<Box<str>>, Fault>;

    /// Takes batches out of [`BATCHES`], within the transaction if there is one, else in one of its
    /// own: their markers are gone.
    ///
    /// # Errors
    /// What the database says.
    async fn forget(&mut self, batches: &[Box<str>]) -> Result<(), Fault>;

    /// Commits what was done since [`Mover::pick`], and lets go of the rows.
    ///
    /// # Errors
    /// What the database says; the transaction has ended, or [`Mover::retreat`] or
    /// [`Mover::rollback`] is to be called.
    async fn commit(&mut self) -> Result<(), Fault>;

    /// After a commit that failed for what was written: goes back to where [`Mover::pick`] left the
    /// transaction, its rows still locked. False: the transaction has ended, for the database
    /// keeps none whose commit fails.
    ///
    /// # Errors
    /// What the database says.
    async fn retreat(&mut self) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Undoes what was done since [`Mover::pick`], and lets go of the rows. Nothing happens if no
    /// transaction is open.
    ///
    /// # Errors
    /// The connection is lost: the database rolls back.
    async fn rollback(&mut self) -> Result<(), Fault>;

    /// True if there is a row that meets the plan's filter, held by somebody or not. Called outside
    /// of a transaction.
    ///
    /// # Errors
    /// What the database says.
    async fn left(&mut self) -> Result<bool, Fault>;

    /// Says good-bye to the database. Dropping a mover without it is allowed, and rolls back.
    async fn close(self: Box<Self>) {}
}
