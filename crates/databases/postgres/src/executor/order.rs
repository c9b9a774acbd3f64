//! Which transactions go out first, and which of them may go out together.
//!
//! Writes of one row keep their order, whatever becomes of the transactions that they are in. So
//! what may run again, or is set apart, takes with it what follows it on the same rows. Units of
//! one source keep theirs even where the first one only might have to run again: no later one
//! leaves before the outcome of the earlier one is known.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use windrow_database::plan::Fence;

use super::batch::{Batch, FUSE_FROM, Placed};
use super::form::WorkKind;
use super::segment::{Mode, Prospect, Segment};

/// Layers of a batch, even ones of joined units, odd ones of units set apart. More are not worth
/// their round trips: what would come behind the last one is set apart there.
const LAYERS: usize = 6;

/// The rows and tables that units touch.
#[derive(Debug, Default)]
struct Reach {
    rows: HashSet<u64, RandomState>,
    tables: HashSet<u64, RandomState>,
    /// Tables of which rows are touched that are not known.
    fenced: HashSet<u64, RandomState>,
    /// Sources that have several units in the batch.
    sources: HashSet<u32, RandomState>,
    /// Other tables may be touched as well.
    all: bool,
}

impl Reach {
    fn meets<F: WorkKind>(&self, batch: &Batch<'_, F>, unit: u32) -> bool {
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

    fn add<F: WorkKind>(&mut self, batch: &Batch<'_, F>, unit: u32) {
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

/// A part of a batch: units that are joined, or set apart.
#[derive(Debug, Default)]
struct Layer {
    reach: Reach,
    joined: Vec<u32>,
    apart: Vec<Segment>,
}

impl<F: WorkKind> Batch<'_, F> {
    /// The transactions of all units that have no verdict yet: all that look good in one, the
    /// others apart behind it, and behind them what must not overtake them.
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

    /// Puts a unit into the first layer that keeps it behind all that it meets.
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

    /// One transaction of good units; a lone one needs no plan.
    fn join(&self, units: Vec<u32>) -> Option<Segment> {
        let mode = match units.as_slice() {
            [] => return None,
            [unit] if self.writes_of(*unit).len() < FUSE_FROM => Mode::Own,
            _ => Mode::Sets,
        };
        Some(Segment::new(units, mode))
    }

    /// What may go out in one round trip, and what must wait for its end: a transaction of several
    /// units may have to run again, and nothing that follows it on the same rows may overtake
    /// it then.
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
