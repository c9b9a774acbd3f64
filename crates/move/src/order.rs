//! The settings of a move: the rows, and their destination.

use std::sync::Arc;

use windrow_core::moves::{NameLimit, Takes};
use windrow_core::{Intake, MovePlan, Moves, Name};

use super::template::Template;

/// The settings of a move.
#[derive(Clone, Debug)]
pub struct Order {
    /// The rows.
    pub plan: MovePlan,
    /// The names of destinations.
    pub template: Template,
    /// The longest name of a destination.
    pub name_limit: NameLimit,
    /// True if missing destinations are created.
    pub create: bool,
    /// The number of rows of one batch, at least one.
    pub batch_rows: usize,
    /// The bytes of values in one batch across databases. A single row may have more.
    pub batch_bytes: usize,
    /// The number of connections that move at once, at least one.
    pub jobs: usize,
    /// The most rows that are moved; `None` for all.
    pub limit: Option<u64>,
    /// True if the move continues as rows arrive, until it is stopped.
    pub follow: bool,
    /// True if the plan's filter skips rows that rows of other tables refer to.
    pub passes_over_referred: bool,
}

/// The destination, if it is another database.
#[derive(Clone)]
pub struct Elsewhere {
    /// The lane to the database.
    pub intake: Intake,
    /// True if the database has transactions: every row is written together with a marker, exactly
    /// once. Otherwise rows are written by the source's key, and a row that is written again is the
    /// same row.
    pub transactional: bool,
    /// The description of its tables. Tables whose names do not follow from rows were checked
    /// before the move.
    pub described: Option<Arc<dyn Moves>>,
    /// The forms in which the source's columns return values, if they matter.
    pub gives: Vec<(Name, Takes)>,
    /// The one column that identifies the rows of all its tables; `None`: each table has its own
    /// key. If rows do not have the column, its values are made from their keys.
    pub document_key: Option<Name>,
    /// The name of the move, the same for all movers of this source:
    /// [`windrow_bookkeeping::Marker::relocation`].
    pub relocation: Box<str>,
    /// The prefix of the keys of markers, which depends on the columns that name a row, with
    /// [`windrow_bookkeeping::Marker::TAG_BYTES`] bytes.
    pub tag: Box<str>,
    /// The prefix of the names of batches to this destination.
    pub batches: Box<str>,
}
