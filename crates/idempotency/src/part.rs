//! One unit with its place in the request.

use windrow_bookkeeping::KeyPart;
use windrow_core::{
    Dones, OnConflict, Op, Returning, Unit, UnitFault, UnitOutcome, Write, WriteDone,
};

use crate::fingerprint::Fingerprint;
use crate::stored::Stored;

/// One unit with its place in the request.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) id: KeyPart,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) unit: Unit,
}

impl Part {
    /// Returns the unit with the row before it that prevents a second execution.
    pub(crate) fn marked(&self) -> Unit {
        let told = foretold(self.unit.writes()).map(|dones| Stored::of(&Ok(dones)).bytes());
        let mark = self
            .id
            .insert(&self.fingerprint.to_string(), told.as_deref());
        let mut marked = Unit::of([mark].into_iter().chain(self.unit.writes().iter().cloned()));
        if self.unit.has_long_answer() {
            marked.expect_long_answer();
        }
        marked
    }
}

/// Returns the outcome of a unit without that of its first row, which prevents a second execution.
pub fn without_mark(outcome: UnitOutcome) -> UnitOutcome {
    match outcome {
        Ok(dones) => Ok(dones.into_iter().skip(1).collect()),
        Err(failed) => Err(UnitFault {
            at: failed.at.saturating_sub(1),
            ..failed
        }),
    }
}

/// Returns the outcome of writes if it is certain in advance: each inserts one row.
pub(crate) fn foretold(writes: &[Write]) -> Option<Dones> {
    let is_certain = |write: &Write| {
        let shape = &write.shape;
        shape.op == Op::Insert
            && shape.returning == Returning::Nothing
            && shape.on_conflict != OnConflict::Ignore
    };
    let one = |write| is_certain(write).then(|| WriteDone::rows(1));
    writes.iter().map(one).collect()
}

/// Returns the memory that a request keeps besides its submitted units.
pub(crate) fn kept_bytes(parts: &[Part]) -> usize {
    let of = |part: &Part| part.unit.writes().iter().map(Write::bytes).sum::<usize>();
    parts.iter().map(of).sum()
}
