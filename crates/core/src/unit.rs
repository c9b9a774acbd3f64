//! One or more writes of one client that commit together.

use smallvec::SmallVec;

use crate::write::Write;

/// The smallest thing that a batch holds or leaves out. Nearly always one write, kept without an allocation.
#[derive(Clone, Debug)]
pub struct Unit {
    writes: SmallVec<[Write; 1]>,
    bytes: usize,
}

/// What a queued unit costs besides its values: queue entry, reply, outcome. Measured generously, so that the
/// memory budget errs on the safe side.
pub const UNIT_OVERHEAD: usize = 160;

impl Unit {
    /// A unit of one write.
    pub fn one(write: Write) -> Self {
        let bytes = UNIT_OVERHEAD + write.bytes();
        Self {
            writes: SmallVec::from_buf([write]),
            bytes,
        }
    }

    /// A unit of several writes, which succeed or fail together. An empty one succeeds.
    pub fn of(writes: impl IntoIterator<Item = Write>) -> Self {
        let writes: SmallVec<[Write; 1]> = writes.into_iter().collect();
        let bytes = UNIT_OVERHEAD + writes.iter().map(Write::bytes).sum::<usize>();
        Self { writes, bytes }
    }

    /// The writes, in the order in which the client asked for them.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Bytes that this unit takes in memory while it waits.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Rows that this unit writes, for batch limits: at least one.
    pub fn rows(&self) -> usize {
        self.writes.len().max(1)
    }
}
