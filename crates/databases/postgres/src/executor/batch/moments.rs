//! Writes that read the transaction's clock: which of them may share a transaction, and how far
//! their moments are from its start.

use windrow_core::Op;

use super::{Batch, FUSE_FROM, Placed};
use crate::compiled::Compiled;
use crate::executor::form::WorkKind;
use crate::executor::segment::{Mode, Segment};
use crate::moment::Moment;

impl<F> Compiled<F> {
    /// From how many writes on they become one statement. A single one does too, where only that
    /// gives it a moment of its own.
    pub(crate) fn fuse_from(&self) -> usize {
        match self.has_moments() {
            true => 1,
            false => FUSE_FROM,
        }
    }

    /// True if its set-based statement has a moment for each write.
    pub(crate) fn has_moments(&self) -> bool {
        self.fused.as_ref().is_some_and(|set| set.moments)
    }
}

impl<F: WorkKind> Batch<'_, F> {
    /// True if a write must have a transaction of its own, for that is what gives it a moment of
    /// its own. Its keys have been added.
    pub(super) fn needs_own_moment(&mut self, placed: &Placed, compiled: &Compiled<F>) -> bool {
        match compiled.moment {
            Moment::Unread | Moment::Carried => false,
            Moment::Own => !placed.sets,
            // Who reads the row between the two takes them for one version of it.
            Moment::Shared if compiled.op == Op::Insert && compiled.plain => false,
            Moment::Shared => {
                let keys = self.hashes.get(placed.keys.clone()).unwrap_or_default();
                let mut known = false;
                for key in keys {
                    known |= !self.stamped.insert(*key);
                }
                known
            }
        }
    }

    /// True if the write at this place is sent as a set of one.
    pub(crate) fn is_lone_set(&self, segment: &Segment, item: u32) -> bool {
        let placed = self.placed.get(item as usize);
        let joined = matches!(segment.mode, Mode::Sets | Mode::Telling | Mode::Grouped);
        joined
            && segment.units.len() > 1
            && placed.is_some_and(|placed| placed.sets)
            && self.compiled_at(item).is_some_and(|c| c.has_moments())
    }

    /// True if the single statement of the write at this place would have a moment in common with
    /// others of its transaction, and must not.
    pub(crate) fn is_moment_lost(&self, segment: &Segment, item: u32) -> bool {
        let joined = matches!(segment.mode, Mode::Sets | Mode::Telling | Mode::Grouped);
        let own = |compiled: &std::sync::Arc<Compiled<F>>| compiled.moment == Moment::Own;
        joined && segment.units.len() > 1 && self.compiled_at(item).is_some_and(own)
    }

    /// Gives the distances of these writes from the start of their transaction, in
    /// microseconds. All writes of a unit have the same.
    pub(crate) fn distances(&self, items: &[u32]) -> Vec<i64> {
        let placed = items.iter().map(|item| self.placed.get(*item as usize));
        placed
            .map(|placed| placed.map_or(0, |placed| i64::from(placed.unit) + 1))
            .collect()
    }

    /// Of parts that are to be one transaction, as many as may be: what is sent as a single
    /// statement has the transaction's own moment, and comes before all others.
    pub(crate) fn with_own_moments(&self, mut parts: Vec<Segment>) -> Vec<Segment> {
        let single = |part: &Segment| {
            let own = |compiled: &Compiled<F>| compiled.moment == Moment::Own;
            matches!(part.mode, Mode::Own | Mode::Fresh) && self.any_of(&part.units, own)
        };
        if let Some(second) = parts.iter().skip(1).position(single) {
            parts.truncate(second + 1);
        }
        parts
    }
}
