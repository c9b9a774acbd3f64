//! The outcome of a unit, which is exactly the one that it would have had alone.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::fault::Fault;
use crate::name::Name;
use crate::sql::Signature;
use crate::value::Value;

/// Columns and rows that a write returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The names of the columns; shared by all writes of a statement.
    pub columns: Arc<[Name]>,
    /// The rows; most writes return one or none.
    pub rows: Vec<Box<[Value]>>,
}

/// The outcome of a write that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteDone {
    /// The number of rows that the write inserted, updated, deleted or read.
    pub rows: u64,
    /// The returned columns and rows, if the shape asks for them; never of a call.
    pub returned: Option<Box<Returned>>,
    /// The server's answer to a call besides the count; few calls have one.
    pub extra: Option<Box<Extra>>,
}

impl WriteDone {
    /// Returns the outcome of a write with this row count, without returned rows.
    pub fn rows(rows: u64) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// Returns the outcome of a write with this row count and these returned rows.
    pub fn returning(rows: u64, returned: Returned) -> Self {
        Self {
            rows,
            returned: Some(Box::new(returned)),
            extra: None,
        }
    }
}

/// The server's messages before CommandComplete, and the values left in the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Whole protocol messages (NoticeResponse, DataRow in the formats that were asked for) to be
    /// passed on as they are.
    pub messages: Bytes,
    /// The last value that the call took from a sequence: what `lastval()` and `currval()` answer
    /// afterwards.
    pub generated: Option<Generated>,
    /// The actual types of the call, if it was parsed at its use ([`crate::SqlCall::fresh`]) and
    /// they differ from those of its statement.
    pub signature: Option<Arc<Signature>>,
}

/// A value that was taken from a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The sequence, by its number in the database's catalog.
    pub sequence: u32,
    /// The value.
    pub value: i64,
}

/// The outcomes of a unit's writes, in order.
pub type Dones = SmallVec<[WriteDone; 1]>;

/// A unit that failed as a whole: nothing of it was written (unless
/// [`crate::FaultClass::Unknown`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFault {
    /// The index of the failed write within the unit. 0 if the failure names no write; the number
    /// of writes if the commit of SQL calls failed after all of them.
    pub at: usize,
    /// The reason of the failure.
    pub fault: Fault,
    /// For SQL calls, the outcomes of the calls before the failed one. A server answers them before
    /// it rolls back.
    pub before: Vec<WriteDone>,
}

impl From<Fault> for UnitFault {
    fn from(fault: Fault) -> Self {
        Self {
            at: 0,
            fault,
            before: Vec::new(),
        }
    }
}

/// The outcome of a unit.
pub type UnitOutcome = Result<Dones, UnitFault>;
