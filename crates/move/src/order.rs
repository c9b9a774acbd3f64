//! What is to be moved, and where.

use std::sync::Arc;

use windrow_core::moves::{NameLimit, Takes};
use windrow_core::{Intake, MovePlan, Moves, Name, RowWrite};

use super::template::Template;

/// What is to be moved, and how.
#[derive(Clone, Debug)]
pub struct Order {
    /// Which rows.
    pub plan: MovePlan,
    /// Where they go.
    pub template: Template,
    /// The longest name of a destination.
    pub name_limit: NameLimit,
    /// Destinations that are not there are made.
    pub create: bool,
    /// Rows of one batch, at least one.
    pub batch_rows: usize,
    /// Bytes of values in one batch, where rows are read; a single row may pass it.
    pub batch_bytes: usize,
    /// Connections that move at once, at least one.
    pub jobs: usize,
    /// The most rows that are moved; `None`: all.
    pub limit: Option<u64>,
    /// Whether it goes on as rows arrive, until it is stopped.
    pub follow: bool,
    /// True if the plan's filter passes over rows that others refer to.
    pub passes_over_referred: bool,
}

/// Another database as the destination.
#[derive(Clone)]
pub struct Elsewhere {
    /// The lane that leads there.
    pub intake: Intake<RowWrite>,
    /// It has transactions: every row is written together with a marker, exactly once. Otherwise
    /// rows are written by the source's key, and a row that is written again is the same row.
    pub transactional: bool,
    /// What describes its tables; those that do not follow from rows were looked at before the
    /// move.
    pub described: Option<Arc<dyn Moves>>,
    /// How the source's columns give values, where that matters.
    pub gives: Vec<(Name, Takes)>,
    /// The one column that all its tables tell rows apart by; `None`: that is up to each table.
    /// Where rows do not have it, it is made from their keys.
    pub document_key: Option<Name>,
    /// Which move it is, the same for all that move from this source:
    /// [`windrow_core::moves::Moved::relocation`].
    pub relocation: Box<str>,
    /// What begins the keys of its markers: which columns name a row. Of
    /// [`windrow_core::moves::Moved::TAG_BYTES`].
    pub tag: Box<str>,
    /// What begins the names of batches to this destination.
    pub batches: Box<str>,
}
