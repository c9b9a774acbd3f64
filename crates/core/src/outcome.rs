//! The outcome of a unit: exactly the one that it would have had alone.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::fault::Fault;
use crate::name::Name;
use crate::value::Value;

/// Columns and rows that a write returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The names of the columns; shared by all writes of a statement.
    pub columns: Arc<[Name]>,
    /// The rows; most writes return one or none.
    pub rows: Vec<Box<[Value]>>,
}

/// A row write that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowDone {
    /// The number of rows that the write inserted, updated, deleted or read.
    pub rows: u64,
    /// The returned columns and rows, if the shape asks for them.
    pub returned: Option<Box<Returned>>,
}

impl RowDone {
    /// Returns the outcome of a write with this row count, without returned rows.
    pub fn rows(rows: u64) -> Self {
        Self {
            rows,
            returned: None,
        }
    }
}

/// The outcomes of a unit's writes, in order. `D` is [`Work::Done`].
///
/// [`Work::Done`]: crate::Work::Done
pub type Dones<D> = SmallVec<[D; 1]>;

/// A unit that failed as a whole: nothing of it was written (unless
/// [`crate::FaultClass::Unknown`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFault<D> {
    /// The index of the failed write within the unit. 0 if the failure names no write; the number
    /// of writes if the commit of SQL calls failed after all of them.
    pub at: usize,
    /// The reason of the failure.
    pub fault: Fault,
    /// For SQL calls, the outcomes of the calls before the failed one. A server answers them before
    /// it rolls back.
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
