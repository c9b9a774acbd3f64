//! The port between a move and the database with the pending rows, in a table used as a queue.
//!
//! A [`Mover`] is one connection. It locks rows of the source that no other session has locked
//! ([`Mover::pick`]), writes them to their destinations or deletes them, and commits. The locks
//! separate the movers of all processes: a mover skips locked rows, and the database releases the
//! locks of a mover that dies.
//!
//! **Within one database** ([`MovePlan::across`] is false) statements of the server move the rows:
//! [`Mover::sweep`] if all rows have one destination, else [`Mover::pick`], [`Mover::open`] and
//! [`Mover::transfer`]. The coordinator finds refused rows by halving, and makes them dead letters
//! by [`Mover::reject`].
//!
//! **Across databases** [`Mover::pick`] reads the rows, and the coordinator writes each with a
//! marker to the other database while the source's transaction stays open. Then the mover deletes
//! them from the source and notes the batch in the same transaction ([`Mover::run`]). If the marker
//! of a row exists already, the notes decide: if its batch is not noted, that batch was never
//! committed at the source, so this row has been written and only has to be deleted. If the batch
//! is noted, its rows were deleted, so this is another row with the same key, and the marker is
//! old.

mod table;
mod takes;

use async_trait::async_trait;

pub use crate::bookkeeping::REJECTED;
pub use table::{Destination, NameLimit, Referrer, TableFacts, is_own};
pub use takes::Takes;

use crate::bookkeeping::{OwnAnswer, OwnTable};
use crate::fault::{Fault, FaultClass};
use crate::name::{Name, TableName};
use crate::value::Value;

/// The rows to move, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovePlan {
    /// The source table, which exists.
    pub source: TableName,
    /// Columns that identify a row ([`TableFacts::tells_apart`]). Rows are taken in their order.
    pub key: Box<[Name]>,
    /// The columns that name a row in markers: those of [`TableFacts::naming`], whatever `key` is.
    pub names: Box<[Name]>,
    /// The columns copied to the destination, in order: all that are not generated.
    pub columns: Box<[Name]>,
    /// The column whose value, as text, names the destination of a row.
    pub route: Option<Name>,
    /// A trusted SQL condition from the operator, which is put into parentheses. Only rows that
    /// meet it are moved.
    pub filter: Option<Box<str>>,
    /// True if the destination is another database. Then [`Mover::pick`] reads the rows.
    pub across: bool,
    /// True if the destination is the same kind of database. Then values without a form in other
    /// databases, such as arrays, are read in the database's own spelling as [`Value::Text`].
    pub alike: bool,
}

impl MovePlan {
    /// Returns the tables of Windrow's own that the move needs in the database of its source.
    pub fn own_tables(&self) -> &'static [OwnTable] {
        match self.across {
            true => &[OwnTable::Rejected, OwnTable::Batches],
            false => &[OwnTable::Rejected],
        }
    }
}

/// The limits of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickMost {
    /// The largest number of rows, at least one.
    pub rows: usize,
    /// The largest number of bytes of values that are read ([`MovePlan::across`]). A single row may
    /// be larger. Rows beyond the limit are not locked, or are unlocked with the transaction.
    pub bytes: usize,
}

/// A row of the source, locked until the transaction ends. Its position in the result of
/// [`Mover::pick`] identifies it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picked {
    /// The value of [`MovePlan::route`] as text; `None` for NULL, or without a route.
    pub route: Option<Box<str>>,
    /// The values of [`MovePlan::names`] as a JSON array, which identifies the row: values of
    /// different types are written differently. Empty within one database.
    pub name: Box<str>,
    /// The values of [`MovePlan::columns`]. Empty within one database.
    pub values: Box<[Value]>,
    /// The reason why the row cannot be moved: its route is no text, or (across databases) one of
    /// its values has no form outside its database.
    pub unfit: Option<Fault>,
}

impl Picked {
    /// Returns the fault of a row whose route is not UTF-8, so that it names no table.
    pub fn nameless() -> Fault {
        let message = "the value that decides where the row goes is a text that is not UTF-8";
        Fault::new(FaultClass::Invalid, "42602", message)
    }
}

/// The result of [`Mover::sweep`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The number of moved rows; 0 if other sessions hold all remaining rows.
    pub rows: u64,
    /// False if there were no further unlocked rows when the rows of this batch were locked.
    pub more: bool,
}

/// Picked rows that have one destination.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The destination of the rows.
    pub to: &'a Destination,
    /// The positions of the rows in the result of [`Mover::pick`]; each at most once in a
    /// transaction.
    pub rows: &'a [usize],
}

/// The failure of [`Mover::transfer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The position of the part that failed.
    pub at: usize,
    /// The error of the database.
    pub fault: Fault,
}

/// A picked row that becomes a dead letter.
#[derive(Clone, Copy, Debug)]
pub struct Rejected<'a> {
    /// The position of the row in the result of [`Mover::pick`].
    pub row: usize,
    /// The intended destination; empty if the route is no name.
    pub destination: &'a str,
    /// The reason why the row was refused.
    pub fault: &'a Fault,
}

/// A database with a queue table. Shared by all connections of a move.
#[async_trait]
pub trait Moves: Send + Sync + 'static {
    /// Returns a text that tells this database apart from all others, copies of it included. If two
    /// queues return the same one, both see the same tables, and statements of the server move the
    /// rows, with the rights of the source's role. Never shown. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn place(&self) -> Result<String, Fault>;

    /// Returns the limits of table names. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn name_limit(&self) -> Result<NameLimit, Fault>;

    /// Returns the default number of rows in a batch within the database.
    fn batch_rows(&self) -> usize {
        10_000
    }

    /// Returns the largest useful number of connections; 1 for a database with one writer.
    fn most_movers(&self) -> usize {
        64
    }

    /// Returns the description of a table; `None` if it does not exist. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`]; [`FaultClass::Unsupported`] if it is no table (a view, a
    /// foreign table).
    async fn describe(&self, table: &TableName) -> Result<Option<TableFacts>, Fault>;

    /// Returns the number of rows to be moved, by the value of the route (one entry with `None`
    /// without a route), at most `most` values, in the order of the values. Changes and locks
    /// nothing. Cancel safe.
    ///
    /// # Errors
    /// The error of the database, for example of the filter.
    async fn survey(
        &self,
        plan: &MovePlan,
        most: usize,
    ) -> Result<Vec<(Option<Box<str>>, u64)>, Fault>;

    /// Creates the tables of [`MovePlan::own_tables`] unless they exist. Several processes may do
    /// that at the same time. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn prepare(&self, plan: &MovePlan) -> Result<(), Fault>;

    /// Opens a mover. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn mover(&self, plan: &MovePlan) -> Result<Box<dyn Mover>, Fault>;

    /// Opens notifications of new rows; `None` if the database has none, so that the move polls.
    /// Cancel safe.
    ///
    /// # Errors
    /// As [`crate::Sink::connect`].
    async fn news(&self, plan: &MovePlan) -> Result<Option<Box<dyn News>>, Fault> {
        let _ = plan;
        Ok(None)
    }
}

/// Notifications of new rows. A notification may concern other rows, and some may be missing.
#[async_trait]
pub trait News: Send {
    /// Waits until a notification has arrived since the last call, or since the opening. Cancel
    /// safe: the next call reports a notification that arrived meanwhile.
    ///
    /// # Errors
    /// The connection is lost. The value cannot be used any more.
    async fn wait(&mut self) -> Result<(), Fault>;
}

/// One connection that moves rows.
///
/// No method is cancel safe: a mover whose future was dropped half-way must be dropped, which rolls
/// back. An error of the classes [`FaultClass::Unavailable`], [`FaultClass::Conflict`] and
/// [`FaultClass::Unknown`] ends the transaction; drop the mover and go on with a new one. No row is
/// lost or moved twice then, whether or not the commit took place.
#[async_trait]
pub trait Mover: Send {
    /// Moves a whole batch in one transaction, for plans without a route: locks up to `rows` rows,
    /// writes them to `to`, deletes them and commits.
    ///
    /// # Errors
    /// The error of the database, or not every row arrived at the destination. Then nothing was
    /// moved and no transaction is open; the coordinator finds the refused row by [`Mover::pick`]
    /// and [`Mover::transfer`].
    async fn sweep(&mut self, rows: usize, to: &Destination) -> Result<Swept, Fault>;

    /// Begins a transaction, and locks rows that meet the plan's filter and that no other session
    /// has locked, in the order of the key. If there are none, no transaction is open.
    ///
    /// # Errors
    /// The error of the database; no transaction is open then.
    async fn pick(&mut self, most: PickMost) -> Result<Vec<Picked>, Fault>;

    /// Looks up a destination. If it does not exist and `create` is true, creates it like the
    /// source: with the source's columns, defaults, indexes and constraints, but without what must
    /// not be shared (sequences). May be called in the transaction or before it; picked rows stay
    /// locked. The database decides if a created table survives a rollback.
    ///
    /// # Errors
    /// [`FaultClass::NoTable`]; [`FaultClass::NoColumn`] if columns are missing, and
    /// [`FaultClass::NotNull`] if others are required; the message names them
    /// ([`Destination::new`]); [`FaultClass::Invalid`] if it is the source itself; the database's
    /// error when it is created. The transaction is as it was before.
    async fn open(&mut self, table: &TableName, create: bool) -> Result<Destination, Fault>;

    /// Writes picked rows to their destinations and deletes them from the source: all parts or
    /// none. Constraints that are checked at the commit are checked here if the database can do
    /// that.
    ///
    /// # Errors
    /// [`Refused`]; the transaction is as it was before the call. A part for which fewer rows
    /// arrive, because a trigger or a rule left some out, is an error too
    /// ([`TableFacts::left_out`]).
    async fn transfer(&mut self, parts: &[Part<'_>]) -> Result<(), Refused>;

    /// Deletes picked rows that were written elsewhere from the source: all of them or none.
    ///
    /// # Errors
    /// The error of the database, or a row was not deleted.
    async fn delete(&mut self, rows: &[usize]) -> Result<(), Fault>;

    /// Deletes picked rows from the source and puts them into [`REJECTED`]: all of them or none.
    ///
    /// # Errors
    /// The error of the database, or a row was not deleted.
    async fn reject(&mut self, rows: &[Rejected<'_>]) -> Result<(), Fault>;

    /// Runs a statement on one of Windrow's own tables in the source's database, in the transaction
    /// if there is one, otherwise in one of its own. Every database understands the text. It reads
    /// rows if it begins with `SELECT`.
    ///
    /// # Errors
    /// The error of the database.
    async fn run(&mut self, sql: &str) -> Result<OwnAnswer, Fault>;

    /// Commits the changes since [`Mover::pick`] and unlocks the rows.
    ///
    /// # Errors
    /// The error of the database. Call [`Mover::retreat`] or [`Mover::rollback`] then, unless the
    /// transaction has ended.
    async fn commit(&mut self) -> Result<(), Fault>;

    /// Returns to the state after [`Mover::pick`], with its rows still locked, after a commit that
    /// failed because of what was written. Returns false if the transaction has ended, because the
    /// database keeps none whose commit fails.
    ///
    /// # Errors
    /// The error of the database.
    async fn retreat(&mut self) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Rolls back the changes since [`Mover::pick`] and unlocks the rows. Does nothing without a
    /// transaction.
    ///
    /// # Errors
    /// The connection is lost: the database rolls back.
    async fn rollback(&mut self) -> Result<(), Fault>;

    /// Returns true if a row meets the plan's filter, locked or not. Called outside a transaction.
    ///
    /// # Errors
    /// The error of the database.
    async fn left(&mut self) -> Result<bool, Fault>;

    /// Closes the connection in an orderly way. Dropping a mover instead rolls back.
    async fn close(self: Box<Self>) {}
}
