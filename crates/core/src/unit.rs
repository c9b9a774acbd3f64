//! One or more writes of one client that commit together.

use smallvec::SmallVec;

use crate::shape::Op;
use crate::source::SourceId;
use crate::write::Write;

/// The smallest thing that a batch holds or leaves out. Nearly always one write, kept without an
/// allocation.
#[derive(Clone, Debug)]
pub struct Unit {
    writes: SmallVec<[Write; 1]>,
    bytes: usize,
    source: SourceId,
    has_long_answer: bool,
}

/// The memory of a queued unit besides its values: queue entry, reply, outcome. Measured
/// generously, so that the memory budget errs on the safe side.
pub const UNIT_OVERHEAD: usize = 160;

impl Unit {
    /// A unit of one write.
    pub fn one(write: Write) -> Self {
        let bytes = UNIT_OVERHEAD + write.bytes();
        Self {
            writes: SmallVec::from_buf([write]),
            bytes,
            source: SourceId::OWN,
            has_long_answer: false,
        }
    }

    /// A unit of several writes, which succeed or fail together. An empty one succeeds.
    pub fn of(writes: impl IntoIterator<Item = Write>) -> Self {
        let writes: SmallVec<[Write; 1]> = writes.into_iter().collect();
        let bytes = UNIT_OVERHEAD + writes.iter().map(Write::bytes).sum::<usize>();
        Self {
            writes,
            bytes,
            source: SourceId::OWN,
            has_long_answer: false,
        }
    }

    /// Returns the operations of its writes, in order.
    pub fn ops(&self) -> impl Iterator<Item = Op> {
        self.writes.iter().map(Write::op)
    }

    /// The writes, in the order in which the client asked for them.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Makes it one of `source`'s. [`crate::Intake::submit`] does so with all that it hands over.
    pub fn hand_over(&mut self, source: SourceId) {
        self.source = source;
    }

    /// Returns the source of the unit. Units of one source may rely on each other: the later one
    /// must neither be executed nor be seen before the earlier one. [`SourceId::OWN`] for a unit
    /// that was not handed over yet.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Notes that a long answer is expected, so that units with short answers need not wait for it.
    pub fn expect_long_answer(&mut self) {
        self.has_long_answer = true;
    }

    /// True if a long answer is expected.
    pub fn has_long_answer(&self) -> bool {
        self.has_long_answer
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
