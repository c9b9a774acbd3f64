//! Decides which transactions of a batch are sent first, and which may be sent together.
//!
//! Writes of one row keep their order, whatever the outcome of their transactions is. So a unit
//! that may run again, or that has a transaction of its own, takes with it all later units on the
//! same rows. Units of one source are stricter: no later one is sent before the outcome of the
//! earlier one is known.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use windrow_database::plan::Fence;

use super::batch::{Batch, FUSE_FROM};
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

/// The layers of a batch: no unit conflicts with one of a later layer that came before it.
struct Layers([Layer; LAYERS]);

impl Layers {
    /// Adds a unit to the first layer in which it runs after all units that it conflicts with.
    fn add(&mut self, batch: &Batch<'_>, unit: u32) {
        let Self(layers) = self;
        let last = layers.iter().rposition(|l| l.reach.meets(batch, unit));
        let mode = mode_apart(batch, unit);
        let wanted = usize::from(mode.is_some());
        let at = last.map_or(wanted, |last| last + usize::from(last % 2 != wanted));
        let at = at.min(LAYERS - 1);
        let Some(layer) = layers.get_mut(at) else {
            return;
        };
        layer.reach.add(batch, unit);
        match mode {
            None if at.is_multiple_of(2) => layer.joined.push(unit),
            mode => layer
                .apart
                .push(Segment::one(unit, mode.unwrap_or(Mode::Own))),
        }
    }
}

/// Returns the transactions of all units without a verdict: one for all units that are expected to
/// succeed, then one for each other unit, then those of units that must not overtake these.
pub(crate) fn first_segments(batch: &mut Batch<'_>) -> Vec<Segment> {
    batch.hold();
    let pending = batch.pending();
    let good = |unit: &u32| mode_apart(batch, *unit).is_none();
    if pending.iter().all(good) {
        return join(batch, pending).into_iter().collect();
    }
    let mut layers = Layers(Default::default());
    for unit in pending {
        layers.add(batch, unit);
    }
    let segments = layers.0.into_iter().flat_map(|layer| {
        let joined = join(batch, layer.joined);
        joined.into_iter().chain(layer.apart)
    });
    segments.collect()
}

fn mode_apart(batch: &Batch<'_>, unit: u32) -> Option<Mode> {
    match batch.prospects.get(unit as usize) {
        Some(Prospect::Apart(mode)) => Some(mode.clone()),
        _ => None,
    }
}

/// Joins units into one transaction; `None` for no units. A single small unit runs by prepared
/// statements of its own.
fn join(batch: &Batch<'_>, units: Vec<u32>) -> Option<Segment> {
    let mode = match units.as_slice() {
        [] => return None,
        [unit] if batch.writes_of(*unit).len() < FUSE_FROM => Mode::Own,
        _ => Mode::Sets,
    };
    Some(Segment::new(units, mode))
}

/// Splits the segments into those of the next round trip and those that wait for its end. A
/// transaction of several units may have to run again, and no later segment on the same rows may
/// overtake it then.
pub(crate) fn in_order(batch: &Batch<'_>, todo: Vec<Segment>) -> (Vec<Segment>, Vec<Segment>) {
    if todo.len() < 2 {
        return (todo, Vec::new());
    }
    let mut before = Reach::default();
    todo.into_iter().partition(|segment| {
        let now = !segment.units.iter().any(|unit| before.meets(batch, *unit));
        let rows = !now || segment.may_come_back();
        for unit in &segment.units {
            match rows {
                true => before.add(batch, *unit),
                false => before.sources.extend(batch.sources.of_unit(*unit)),
            }
        }
        now
    })
}

/// Moves the segments after unproven code into `later`: after that code the connection is reset
/// and has no prepared statements, so segments that rely on them wait for the next round trip.
pub(crate) fn up_to_unproven(
    batch: &Batch<'_>,
    now: Vec<Segment>,
    mut later: Vec<Segment>,
) -> (Vec<Segment>, Vec<Segment>) {
    let unproven = |segment: &Segment| batch.is_unproven(segment);
    let first = now.iter().position(unproven).unwrap_or(now.len());
    let next = now
        .iter()
        .skip(first)
        .position(|segment| !unproven(segment));
    let Some(next) = next else {
        return (now, later);
    };
    let mut now = now;
    let rest = now.split_off(first + next);
    later.splice(..0, rest);
    (now, later)
}
