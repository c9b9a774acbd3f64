//! What one unit is told: exactly what it would have been told alone.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::fault::Fault;
use crate::name::Name;
use crate::value::Value;

/// Columns and rows that a write gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The names of the columns; shared by all writes of a statement.
    pub columns: Arc<[Name]>,
    /// The rows; most writes give back one or none.
    pub rows: Vec<Box<[Value]>>,
}

/// A row write that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowDone {
    /// Rows that it inserted, updated, deleted or read: its own count.
    pub rows: u64,
    /// What it gave back, where its shape asks for that.
    pub returned: Option<Box<Returned>>,
}

impl RowDone {
    /// A write of so many rows that gives nothing back.
    pub fn rows(rows: u64) -> Self {
        Self {
            rows,
            returned: None,
        }
    }
}

/// What each write of a unit is told, in their order. `D`: [`Work::Done`].
///
/// [`Work::Done`]: crate::Work::Done
pub type Dones<D> = SmallVec<[D; 1]>;

/// A unit that failed as a whole: nothing of it was written (unless
/// [`crate::FaultClass::Unknown`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFault<D> {
    /// The index, within the unit, of the write that failed. 0 where the failure names no write;
    /// for SQL calls their number where it was the commit that failed, behind all of them.
    pub at: usize,
    /// Why.
    pub fault: Fault,
    /// SQL calls: what those before the failed one were told before all was undone: a server
    /// answers each of them.
    pub before: Vec<D>,
}

impl<D> From<Fault> for UnitFault<D> {
    fn from(fault: Fault) -> Self {
        Self {
            at: 0,
            fault,
            before: Vec::new(),
        }
    }
}

/// The outcome of a unit.
pub type UnitOutcome<D> = Result<Dones<D>, UnitFault<D>>;
