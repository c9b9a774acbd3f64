//! The port to Windrow's own tables in a user's database: their names, and a session on them.
//!
//! `windrow-bookkeeping` creates, upgrades, reads and cleans the tables through this port; a
//! database implements it with the texts of its statements and its way to run them. What Windrow
//! writes into the tables is an ordinary [`Write`](crate::Write).

use std::time::Duration;

use async_trait::async_trait;

use crate::fault::Fault;
use crate::load::Mark;
use crate::name::TableName;

/// The table of dead letters: rows of a move that their destination refused, and writes of the
/// spool that the database refused after they had been acknowledged.
///
/// Columns: `id` (primary key, generated), `rejected_at` (time in UTC, set by the database),
/// `source` (the table of a move, or the position in a spool), `destination` (a table), `key` and
/// `row` (JSON: an array of the key's values, an object of all columns), `code`, `message` and
/// `constraint` (of the fault; the last may be NULL), `entry` (the bytes of the spool's entry, with
/// which the write can be tried again; NULL for a move).
pub const REJECTED: &str = "windrow_rejected";

/// The table with the progress of each partition of a spool. Columns: `spool` and `partition` (the
/// primary key), `position` (of the first entry that is not applied), `last_entry` (the name of the
/// entry before it, or an empty text). `spool`, `partition` and `position` together have a unique
/// key, so that a row can be found by all three.
pub const PROGRESS: &str = "windrow_progress";

/// The table of keys. Columns: `idempotency_key` (from the client) and `part` (of the request),
/// which are the primary key; `request` (a fingerprint of the request), `outcome` (the outcome that
/// the client got, as opaque bytes; NULL until it is known), `made_at` (time in UTC, set by the
/// database).
///
/// The transaction that executes a part inserts its row. If the row exists, the part was executed,
/// and the primary key prevents a second execution.
pub const IDEMPOTENCY: &str = "windrow_idempotency";

/// The table of batches that were taken out of the source for another database, and whose markers
/// may still exist. It is in the database of the source. Columns: `batch` (text, the key) and
/// `moved_at` (time in UTC).
pub const BATCHES: &str = "windrow_batches";

/// The table of markers, in the destination of a move from another database. Columns: `move` and
/// `key` (which together are unique), `batch`; see `windrow_bookkeeping::Marker`.
pub const MARKERS: &str = "windrow_moved";

/// One of Windrow's own tables, which is created when it is first needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnTable {
    /// [`PROGRESS`].
    Progress,
    /// [`REJECTED`].
    Rejected,
    /// [`IDEMPOTENCY`].
    Keys,
    /// [`Mark::TABLE`](crate::Mark::TABLE).
    Loads,
    /// [`BATCHES`].
    Batches,
    /// [`MARKERS`].
    Markers,
}

impl OwnTable {
    /// All of the tables.
    pub const ALL: [Self; 6] = [
        Self::Progress,
        Self::Rejected,
        Self::Keys,
        Self::Loads,
        Self::Batches,
        Self::Markers,
    ];

    /// Returns the name of the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Progress => PROGRESS,
            Self::Rejected => REJECTED,
            Self::Keys => IDEMPOTENCY,
            Self::Loads => Mark::TABLE,
            Self::Batches => BATCHES,
            Self::Markers => MARKERS,
        }
    }

    /// Returns true for a table that only Windrow itself makes, in its own form: rows that name it
    /// never make it.
    pub fn is_one(table: &TableName) -> bool {
        Self::ALL.iter().any(|own| *table.table == *own.name())
    }
}

/// A statement on Windrow's own tables for which each database has its own text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnStatement<'a> {
    /// Creates a table with its indexes, if the table does not exist.
    Create(OwnTable),
    /// Renames the column `moved_at` of [`REJECTED`] to `rejected_at`.
    RenameMovedAt,
    /// Adds the column `entry` to [`REJECTED`].
    AddEntry,
    /// Returns a row if the database has an index by which it finds the markers of a batch.
    FindMarkerIndex,
    /// Adds that index to [`MARKERS`], which an earlier version has created without it.
    IndexMarkers,
    /// Runs a text that every database understands. It reads rows if it begins with `SELECT`.
    Plain(&'a str),
    /// Deletes at most `most` rows of [`IDEMPOTENCY`] that are older than `age`, oldest first.
    ForgetKeys {
        /// The age from which on rows are deleted.
        age: Duration,
        /// The largest number of deleted rows.
        most: usize,
    },
    /// Reads the columns of [`REJECTED`], in the order of its documentation, of at most `most` rows
    /// with numbers above `after`, in the order of their numbers.
    ReadRejected {
        /// The number of the row before the first one.
        after: u64,
        /// The largest number of rows.
        most: usize,
    },
    /// Reads [`Span::first`](crate::Span::first) and [`Span::end`](crate::Span::end) of all marks
    /// of a load, in the order of the first. Waits for portions of the load that are still being
    /// written, if the database can do that.
    ReadMarks {
        /// The name of the load.
        load: &'a str,
    },
    /// Replaces all marks of a load that lie within this one by it, in one transaction.
    MergeMarks(&'a Mark),
}

/// The result of a change of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableChange {
    /// The table is changed.
    Done,
    /// Another session has created or changed the table at the same time, so this change failed.
    Raced(Fault),
}

/// The result of a statement on Windrow's own tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAnswer {
    /// The number of rows that were deleted.
    pub deleted: u64,
    /// The rows that were read. Each value is a text of the database, or the bytes of a binary
    /// column; `None` is NULL.
    pub rows: Vec<Vec<Option<Box<[u8]>>>>,
}

/// Access to Windrow's own tables in a database.
#[async_trait]
pub trait Bookkeeping: Send + Sync + 'static {
    /// Opens a session. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn open(&self) -> Result<Box<dyn OwnSession>, Fault>;
}

/// A session on Windrow's own tables. Other sessions, of other processes too, may use and change
/// the tables at the same time. All functions are cancel safe; a session whose function was
/// cancelled is not used again.
#[async_trait]
pub trait OwnSession: Send {
    /// Returns the names of a table's columns; none if the table does not exist.
    ///
    /// # Errors
    /// The error of the database.
    async fn columns(&mut self, table: OwnTable) -> Result<Vec<String>, Fault>;

    /// Creates or changes a table, as a whole or not at all.
    ///
    /// # Errors
    /// The error of the database.
    async fn change(&mut self, statement: OwnStatement<'_>) -> Result<TableChange, Fault>;

    /// Executes a statement that reads or deletes rows.
    ///
    /// # Errors
    /// The error of the database.
    async fn run(&mut self, statement: OwnStatement<'_>) -> Result<OwnAnswer, Fault>;

    /// True if the session can be kept for a later statement.
    fn is_alive(&mut self) -> bool {
        false
    }

    /// Ends the session.
    async fn close(self: Box<Self>) {}
}
