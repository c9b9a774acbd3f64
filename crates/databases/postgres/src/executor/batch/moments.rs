//! Writes that read the time of their transaction: which of them may share a transaction, and the
//! offset of each from its start.

use windrow_core::Op;

use super::{Batch, FUSE_FROM, Placed};
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

impl Batch<'_> {
    /// Returns true if a write needs a transaction of its own because otherwise it would share its
    /// time with another write. Call this after the write's keys have been added.
    pub(super) fn needs_own_moment(&mut self, placed: &Placed, compiled: &Compiled) -> bool {
        match compiled.moment {
            Moment::Unread | Moment::Carried => false,
            Moment::Own => !placed.sets,
            // Two writes of a row with one time look like one version to a reader between them.
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

    /// Returns true if the write at this index is sent as a set of one.
    pub(crate) fn is_lone_set(&self, segment: &Segment, item: u32) -> bool {
        let placed = self.placed.get(item as usize);
        let joined = matches!(segment.mode, Mode::Sets | Mode::Telling | Mode::Grouped);
        joined
            && segment.units.len() > 1
            && placed.is_some_and(|placed| placed.sets)
            && self.compiled_at(item).is_some_and(|c| c.has_moments())
    }

    /// Returns true if the write at this index must have a time of its own, and would lose it if
    /// sent as a single statement.
    pub(crate) fn is_moment_lost(&self, segment: &Segment, item: u32) -> bool {
        let joined = matches!(segment.mode, Mode::Sets | Mode::Telling | Mode::Grouped);
        let own = |compiled: &std::sync::Arc<Compiled>| compiled.moment == Moment::Own;
        joined && segment.units.len() > 1 && self.compiled_at(item).is_some_and(own)
    }

    /// Returns the offsets of these writes from the start of their transaction, in microseconds.
    /// All writes of a unit have the same offset.
    pub(crate) fn distances(&self, items: &[u32]) -> Vec<i64> {
        let placed = items.iter().map(|item| self.placed.get(*item as usize));
        placed
            .map(|placed| placed.map_or(0, |placed| i64::from(placed.unit) + 1))
            .collect()
    }

    /// Shortens a list of parts to those that may share a transaction. A part that is sent as a
    /// single statement has the transaction's own time, so it can only be the first one.
    pub(crate) fn with_own_moments(&self, mut parts: Vec<Segment>) -> Vec<Segment> {
        let single = |part: &Segment| {
            let own = |compiled: &Compiled| compiled.moment == Moment::Own;
            matches!(part.mode, Mode::Own | Mode::Fresh) && self.any_of(&part.units, own)
        };
        if let Some(second) = parts.iter().skip(1).position(single) {
            parts.truncate(second + 1);
        }
        parts
    }
}
