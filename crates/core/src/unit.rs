//! One or more writes of one client that commit together.

use smallvec::SmallVec;

use crate::shape::Op;
use crate::source::SourceId;
use crate::statement::Call;
use crate::write::Write;

/// The smallest thing that a batch holds or leaves out. Nearly always one write, kept without an
/// allocation.
#[derive(Clone, Debug)]
pub struct Unit {
    load: Load,
    bytes: usize,
    source: SourceId,
}

/// What a unit is made of: never both in one, for a lane serves one kind of frontend.
#[derive(Clone, Debug)]
enum Load {
    Writes(SmallVec<[Write; 1]>),
    Calls(SmallVec<[Call; 1]>),
}

/// What a queued unit costs besides its values: queue entry, reply, outcome. Measured generously,
/// so that the memory budget errs on the safe side.
pub const UNIT_OVERHEAD: usize = 160;

impl Unit {
    /// A unit of one write.
    pub fn one(write: Write) -> Self {
        let bytes = UNIT_OVERHEAD + write.bytes();
        Self {
            load: Load::Writes(SmallVec::from_buf([write])),
            bytes,
            source: SourceId::OWN,
        }
    }

    /// A unit of several writes, which succeed or fail together. An empty one succeeds.
    pub fn of(writes: impl IntoIterator<Item = Write>) -> Self {
        let writes: SmallVec<[Write; 1]> = writes.into_iter().collect();
        let bytes = UNIT_OVERHEAD + writes.iter().map(Write::bytes).sum::<usize>();
        Self {
            load: Load::Writes(writes),
            bytes,
            source: SourceId::OWN,
        }
    }

    /// A unit of SQL calls, which succeed or fail together.
    pub fn calls_of(calls: impl IntoIterator<Item = Call>) -> Self {
        let calls: SmallVec<[Call; 1]> = calls.into_iter().collect();
        let bytes = UNIT_OVERHEAD + calls.iter().map(Call::bytes).sum::<usize>();
        Self {
            load: Load::Calls(calls),
            bytes,
            source: SourceId::OWN,
        }
    }

    /// The writes, in the order in which the client asked for them. Empty where the unit holds
    /// calls.
    pub fn writes(&self) -> &[Write] {
        match &self.load {
            Load::Writes(writes) => writes,
            Load::Calls(_) => &[],
        }
    }

    /// The SQL calls, in the order in which the client asked for them. Empty where the unit holds
    /// writes.
    pub fn calls(&self) -> &[Call] {
        match &self.load {
            Load::Writes(_) => &[],
            Load::Calls(calls) => calls,
        }
    }

    /// What each of its writes or calls does, in order.
    pub fn ops(&self) -> impl Iterator<Item = Op> {
        let writes = self.writes().iter().map(|write| write.shape.op);
        let calls = self.calls().iter().map(|call| call.statement.parsed().op);
        writes.chain(calls)
    }

    /// Makes it one of `source`'s. [`crate::Intake::submit`] does so with all that it hands over.
    pub fn hand_over(&mut self, source: SourceId) {
        self.source = source;
    }

    /// Who asks. Units of one source may rely on each other: the later one must neither be executed
    /// nor be seen before the earlier one. [`SourceId::OWN`] for a unit that was built and
    /// given to nobody.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Bytes that this unit takes in memory while it waits.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Rows that this unit writes, for batch limits: at least one.
    pub fn rows(&self) -> usize {
        self.writes().len().max(self.calls().len()).max(1)
    }
}
