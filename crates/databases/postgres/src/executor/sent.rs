//! What was sent in a round trip, in the order in which it is answered.

use super::segment::{Mode, Segment};

/// A statement that was sent, in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The guard of a version of a table, or its check.
    Guard(u64),
    /// The write at this place of the batch.
    Single(u32),
    /// What keeps a part of a transaction apart from the others.
    Savepoint,
    /// The question behind the write at this place: what it has left behind. Where the write is all
    /// of its batch, it is the check of its table as well.
    FollowUp(u32),
    /// The writes at these places, in the order of the parameters. `heads`: how many columns of its
    /// rows are ours; 0: a row is for us as a whole.
    Set {
        items: Vec<u32>,
        telling: bool,
        heads: u8,
    },
}

impl Sent {
    /// The one write that it is of, if it is of one.
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
    /// Where its Sync ends in the send buffer.
    pub(crate) end: usize,
    /// It writes nothing, so nothing can be lost with it.
    pub(crate) reads: bool,
}

impl SentTransaction {
    /// A statement of our own, which no unit is told of.
    pub(crate) fn aside(end: usize) -> Self {
        Self {
            segment: Segment::new(Vec::new(), Mode::Own),
            statements: Vec::new(),
            end,
            reads: true,
        }
    }
}
