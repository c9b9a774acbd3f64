//! Statements joined with their tables' descriptions: what is the same for row writes and for SQL
//! calls.

use std::sync::Arc;

use windrow_core::{Apart, Op};
use windrow_database::plan::Fence;

use crate::catalog::table::Table;
use crate::moment::Moment;

/// A statement that is ready to be executed on one version of its table. `F`: what is particular
/// to the kind of work that it comes from.
#[derive(Debug)]
pub(crate) struct Compiled<F> {
    pub(crate) numbers: Numbers,
    /// By what failures are remembered.
    pub(crate) failure_key: u64,
    pub(crate) op: Op,
    /// An insert that may not meet a row that is there.
    pub(crate) plain: bool,
    pub(crate) table: Arc<Table>,
    /// The statement of one write.
    pub(crate) single: Box<str>,
    /// The statement of many writes.
    pub(crate) fused: Option<Fused>,
    /// The same as an insert that leaves out rows that would fail, and tells which they are.
    pub(crate) telling: Option<Fused>,
    pub(crate) fence: Fence,
    /// Somebody could tell in which order its rows were written.
    pub(crate) order_shows: bool,
    /// The extent to which it may share the time of a transaction.
    pub(crate) moment: Moment,
    /// Why it is sent apart, if so.
    pub(crate) apart: Option<Arc<Apart>>,
    pub(crate) form: F,
}

/// By what a connection tells statements apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// The statement's own.
    pub(crate) id: u64,
    /// The same for all that share the statement of one write, whatever formats their values have.
    pub(crate) single_id: u64,
}

/// A set-based statement: the same for every number of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fused {
    pub(crate) sql: String,
    /// The types of its parameters: an array each.
    pub(crate) types: Box<[u32]>,
    /// It counts its rows and fails where one is missing, so there is nothing to tell of each. Else
    /// it gives a row for each write that took place.
    pub(crate) counted: bool,
    /// True if the last parameter holds the distance of each write from the transaction's start.
    pub(crate) moments: bool,
    /// Places of values by which rows are found again: a write that has NULL there runs by itself.
    pub(crate) found_by: Box<[usize]>,
}

impl<F> Compiled<F> {
    /// Whether code runs of which nothing is proven: what it leaves behind must not be met by
    /// others.
    pub(crate) fn is_unproven(&self) -> bool {
        self.apart.as_ref().is_some_and(|apart| apart.unproven)
    }

    /// The set-based statement; the one that leaves out rows that would fail, where `telling`.
    pub(crate) fn set(&self, telling: bool) -> Option<&Fused> {
        match telling {
            true => self.telling.as_ref(),
            false => self.fused.as_ref(),
        }
    }
}
