//! What one unit is told: exactly what it would have been told alone.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::fault::Fault;
use crate::name::Name;
use crate::signature::Signature;
use crate::value::Value;

/// Columns and rows that a write gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The names of the columns; shared by all writes of a statement.
    pub columns: Arc<[Name]>,
    /// The rows; most writes give back one or none.
    pub rows: Vec<Box<[Value]>>,
}

/// A write that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that it inserted, updated, deleted or read: its own count.
    pub rows: u64,
    /// What it gave back, where its shape asks for that.
    pub returned: Option<Box<Returned>>,
    /// What a server of PostgreSQL's protocol said of an SQL call besides its count.
    pub told: Option<Box<Told>>,
}

/// What a server of PostgreSQL's protocol said before CommandComplete, and what it left behind in
/// the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Whole protocol messages (NoticeResponse, DataRow in the formats that were asked for) to be
    /// passed on as they are.
    pub messages: Bytes,
    /// The last value that the call took from a sequence: what `lastval()` and `currval()` answer
    /// afterwards.
    pub generated: Option<Generated>,
    /// The types that the call turned out to have, where it was parsed at its use
    /// ([`crate::Call::fresh`]) and they are other than those of its statement.
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

impl Done {
    /// A write of so many rows that gives nothing back.
    pub fn rows(rows: u64) -> Self {
        Self {
            rows,
            returned: None,
            told: None,
        }
    }
}

/// One [`Done`] for each write of a unit, in their order.
pub type Dones = SmallVec<[Done; 1]>;

/// A unit that failed as a whole: nothing of it was written (unless
/// [`crate::FaultClass::Unknown`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFault {
    /// The index, within the unit, of the write that failed. 0 where the failure names no write;
    /// for SQL calls their number where it was the commit that failed, behind all of them.
    pub at: usize,
    /// Why.
    pub fault: Fault,
    /// SQL calls: what those before the failed one were told before all was undone: a server
    /// answers each of them.
    pub before: Vec<Done>,
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
