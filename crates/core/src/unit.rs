//! One or more writes of one client that commit together.

use smallvec::SmallVec;

use crate::shape::Op;
use crate::source::SourceId;
use crate::write::Write;

/// The smallest part of a batch, which is executed as a whole. Nearly always one write, which needs
/// no allocation.
#[derive(Clone, Debug)]
pub struct Unit {
    writes: SmallVec<[Write; 1]>,
    bytes: usize,
    source: SourceId,
    has_long_answer: bool,
}

/// The memory of a queued unit besides its values: queue entry, reply, outcome. Rather too large
/// than too small, for the memory budget.
pub const UNIT_OVERHEAD: usize = 160;

impl Unit {
    /// Returns a unit of one write.
    pub fn one(write: Write) -> Self {
        let bytes = UNIT_OVERHEAD + write.bytes();
        Self {
            writes: SmallVec::from_buf([write]),
            bytes,
            source: SourceId::OWN,
            has_long_answer: false,
        }
    }

    /// Returns a unit of several writes, which succeed or fail together. An empty unit succeeds.
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

    /// Returns the writes, in the client's order.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Sets the source. [`crate::Intake::submit`] does so for all units.
    pub fn hand_over(&mut self, source: SourceId) {
        self.source = source;
    }

    /// Returns the source of the unit. Units of one source may rely on each other: the later one
    /// must neither be executed nor be seen before the earlier one. [`SourceId::OWN`] before the
    /// unit is submitted.
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

    /// Returns the bytes that the unit takes in memory while it waits.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the rows that the unit writes, for batch limits: at least one.
    pub fn rows(&self) -> usize {
        self.writes.len().max(1)
    }
}
