//! Decides which transactions of a batch are sent first, and which may be sent together.
//!
//! Writes of one row keep their order, whatever becomes of their transactions. So a unit that may
//! run again, or that has a transaction of its own, takes with it all later units on the same rows.
//! Units of one source are stricter: no later one is sent before the outcome of the earlier one is
//! known.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use windrow_database::plan::Fence;

use super::batch::{Batch, FUSE_FROM, Placed};
use super::segment::{Mode, Prospect, Segment};

/// Number of layers of a batch: even ones for joined units, odd ones for units with a transaction
/// of their own. More would cost more round trips than they save: units that would come after the
/// last layer get a transaction of their own there.
const LAYERS: usize = 6;

/// The rows and tables that units touch.
#[derive(Debug, Default)]
struct Reach {
    rows: HashSet<u64, RandomState>,
    tables: HashSet<u64, RandomState>,
    /// Tables in which unknown rows are touched.
    fenced: HashSet<u64, RandomState>,
    /// Sources that have several units in the batch.
    sources: HashSet<u32, RandomState>,
    /// True if other tables may be touched as well.
    all: bool,
}

impl Reach {
    fn meets(&self, batch: &Batch<'_>, unit: u32) -> bool {
        let source = batch.sources.of_unit(unit);
        if source.is_some_and(|source| self.sources.contains(&source)) {
            return true;
        }
        batch.placed_of(unit).any(|placed| {
            let table = batch.identity_of(placed);
            batch
                .keys_of(placed)
                .iter()
                .any(|key| self.rows.contains(key))
                || self.fenced.contains(&table)
                || (placed.fence >= Fence::Table && self.tables.contains(&table))
                || (placed.fence == Fence::All && !self.tables.is_empty())
                || self.all
        })
    }

    fn add(&mut self, batch: &Batch<'_>, unit: u32) {
        self.sources.extend(batch.sources.of_unit(unit));
        for placed in batch.placed_of(unit) {
            let table = batch.identity_of(placed);
            self.rows.extend(batch.keys_of(placed));
            self.tables.insert(table);
            if placed.fence >= Fence::Table {
                self.fenced.insert(table);
            }
            self.all |= placed.fence == Fence::All;
        }
    }
}

/// A part of a batch: joined units, and units with a transaction of their own.
#[derive(Debug, Default)]
struct Layer {
    reach: Reach,
    joined: Vec<u32>,
    apart: Vec<Segment>,
}

impl Batch<'_> {
    /// Returns the transactions of all units without a verdict: one for all units that are expected
    /// to succeed, then one for each other unit, then those of units that must not overtake these.
    pub(crate) fn first_segments(&mut self) -> Vec<Segment> {
        self.hold();
        let pending = self.pending();
        let good = |unit: &u32| self.mode_apart(*unit).is_none();
        if pending.iter().all(good) {
            return self.join(pending).into_iter().collect();
        }
        let mut layers: Vec<Layer> = Vec::new();
        layers.resize_with(LAYERS, Layer::default);
        for unit in pending {
            self.lay(&mut layers, unit);
        }
        let segments = layers.into_iter().flat_map(|layer| {
            let joined = self.join(layer.joined);
            joined.into_iter().chain(layer.apart)
        });
        segments.collect()
    }

    /// Adds a unit to the first layer in which it runs after all units that it conflicts with.
    fn lay(&self, layers: &mut [Layer], unit: u32) {
        let last = layers.iter().rposition(|l| l.reach.meets(self, unit));
        let mode = self.mode_apart(unit);
        let wanted = usize::from(mode.is_some());
        let at = last.map_or(wanted, |last| last + usize::from(last % 2 != wanted));
        let at = at.min(LAYERS - 1);
        let Some(layer) = layers.get_mut(at) else {
            return;
        };
        layer.reach.add(self, unit);
        match mode {
            None if at.is_multiple_of(2) => layer.joined.push(unit),
            mode => layer
                .apart
                .push(Segment::one(unit, mode.unwrap_or(Mode::Own))),
        }
    }

    fn mode_apart(&self, unit: u32) -> Option<Mode> {
        match self.prospects.get(unit as usize) {
            Some(Prospect::Apart(mode)) => Some(mode.clone()),
            _ => None,
        }
    }

    /// Joins good units into one transaction. A single small unit needs no plan.
    fn join(&self, units: Vec<u32>) -> Option<Segment> {
        let mode = match units.as_slice() {
            [] => return None,
            [unit] if self.writes_of(*unit).len() < FUSE_FROM => Mode::Own,
            _ => Mode::Sets,
        };
        Some(Segment::new(units, mode))
    }

    /// Splits the segments into those of the next round trip and those that wait for its end. A
    /// transaction of several units may have to run again, and no later segment on the same rows
    /// may overtake it then.
    pub(crate) fn in_order(&self, todo: Vec<Segment>) -> (Vec<Segment>, Vec<Segment>) {
        if todo.len() < 2 {
            return (todo, Vec::new());
        }
        let mut before = Reach::default();
        todo.into_iter().partition(|segment| {
            let now = !segment.units.iter().any(|unit| before.meets(self, *unit));
            let rows = !now || segment.may_come_back();
            for unit in &segment.units {
                match rows {
                    true => before.add(self, *unit),
                    false => before.sources.extend(self.sources.of_unit(*unit)),
                }
            }
            now
        })
    }

    pub(crate) fn placed_of(&self, unit: u32) -> impl Iterator<Item = &Placed> {
        let placed = self.placed.get(self.writes_of(unit));
        placed.into_iter().flatten()
    }

    pub(crate) fn keys_of(&self, placed: &Placed) -> &[u64] {
        self.hashes.get(placed.keys.clone()).unwrap_or_default()
    }

    pub(crate) fn identity_of(&self, placed: &Placed) -> u64 {
        let shape = self.shapes.get(placed.shape as usize);
        shape.map_or(u64::MAX, |compiled| {
            compiled.table.identity(compiled.table.version)
        })
    }
}
