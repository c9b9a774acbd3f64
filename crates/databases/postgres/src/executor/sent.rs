//! The statements of a round trip, in the order in which they are answered.

use super::segment::{Mode, Segment};

/// A statement that was sent. Places are indexes into `Batch::placed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The guard of a version of a table, or its check.
    Guard(u64),
    /// The write at this place.
    Single(u32),
    /// A savepoint statement between the parts of a transaction.
    Savepoint,
    /// The query for the sequence value of the write at this place. If that write is the whole
    /// batch, the query also checks the write's table.
    FollowUp(u32),
    /// The writes at these places, in the order of the parameters. `heads`: the number of Windrow's
    /// own columns in its rows; 0 if each whole row is Windrow's own.
    Set {
        items: Vec<u32>,
        telling: bool,
        heads: u8,
    },
}

impl Sent {
    /// Returns the place of the write, if the statement is of exactly one.
    pub(crate) fn write(&self) -> Option<u32> {
        match self {
            Self::Single(item) => Some(*item),
            Self::Set { items, .. } => match items.as_slice() {
                [item] => Some(*item),
                _ => None,
            },
            Self::Guard(_) | Self::Savepoint | Self::FollowUp(_) => None,
        }
    }
}

/// A transaction that was sent.
#[derive(Debug)]
pub(crate) struct SentTransaction {
    pub(crate) segment: Segment,
    pub(crate) statements: Vec<Sent>,
    /// The offset in the send buffer at which the transaction's Sync ends.
    pub(crate) end: usize,
    /// True if the transaction writes nothing, so that nothing is lost with it.
    pub(crate) reads: bool,
}

impl SentTransaction {
    /// Builds the entry of a statement of Windrow's own, which belongs to no unit.
    pub(crate) fn aside(end: usize) -> Self {
        Self {
            segment: Segment::new(Vec::new(), Mode::Own),
            statements: Vec::new(),
            end,
            reads: true,
        }
    }
}
