//! The outcome of a successful call.

use std::sync::Arc;

use bytes::Bytes;

use crate::signature::Signature;

/// A call that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallDone {
    /// Rows that it inserted, updated or deleted: its own count.
    pub rows: u64,
    /// The server's answer besides the count; few calls have one.
    pub extra: Option<Box<Extra>>,
}

impl CallDone {
    /// A call of so many rows, of which the server said nothing else.
    pub fn rows(rows: u64) -> Self {
        Self { rows, extra: None }
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
    /// The types that the call turned out to have, where it was parsed at its use
    /// ([`crate::SqlCall::fresh`]) and they are other than those of its statement.
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
