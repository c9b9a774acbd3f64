//! Writes that read the time of their transaction: which of them may share a transaction, and the
//! offset of each from its start.

use std::sync::Arc;

use super::{Batch, FUSE_FROM};
use crate::compiled::Compiled;
use crate::executor::segment::{Mode, Segment};
use crate::moment::Moment;

impl Compiled {
    /// Returns the number of writes from which they are joined into one statement: one, if only a
    /// set-based statement gives each write a time of its own.
    pub(crate) fn fuse_from(&self) -> usize {
        match self.has_moments() {
            true => 1,
            false => FUSE_FROM,
        }
    }

    /// Returns true if the set-based statement has a time for each write.
    pub(crate) fn has_moments(&self) -> bool {
        self.fused.as_ref().is_some_and(|set| set.moments)
    }
}

/// Returns true if the segment's units share a transaction.
fn is_joined(segment: &Segment) -> bool {
    let joined = matches!(segment.mode, Mode::Sets | Mode::Telling | Mode::Grouped);
    joined && segment.units.len() > 1
}

/// Returns true if the write at this index is sent as a set of one.
pub(crate) fn is_lone_set(batch: &Batch<'_>, segment: &Segment, item: u32) -> bool {
    let placed = batch.placed.get(item as usize);
    is_joined(segment)
        && placed.is_some_and(|placed| placed.sets)
        && batch.compiled_at(item).is_some_and(|c| c.has_moments())
}

/// Returns true if the write at this index must have a time of its own, and would lose it if sent
/// as a single statement.
pub(crate) fn is_moment_lost(batch: &Batch<'_>, segment: &Segment, item: u32) -> bool {
    let own = |compiled: &Arc<Compiled>| compiled.moment == Moment::Own;
    is_joined(segment) && batch.compiled_at(item).is_some_and(own)
}

/// Returns the offsets of these writes from the start of their transaction, in microseconds. All
/// writes of a unit have the same offset.
pub(crate) fn distances(batch: &Batch<'_>, items: &[u32]) -> Vec<i64> {
    let placed = items.iter().map(|item| batch.placed.get(*item as usize));
    placed
        .map(|placed| placed.map_or(0, |placed| i64::from(placed.unit) + 1))
        .collect()
}

/// Shortens a list of parts to those that may share a transaction. A part that is sent as a single
/// statement has the transaction's own time, so it can only be the first one.
pub(crate) fn with_own_moments(batch: &Batch<'_>, mut parts: Vec<Segment>) -> Vec<Segment> {
    let single = |part: &Segment| {
        let own = |compiled: &Compiled| compiled.moment == Moment::Own;
        matches!(part.mode, Mode::Own | Mode::Fresh) && batch.any_of(&part.units, own)
    };
    if let Some(second) = parts.iter().skip(1).position(single) {
        parts.truncate(second + 1);
    }
    parts
}
