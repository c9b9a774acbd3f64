//! Which transactions go out first, and which of them may go out together.

use std::collections::HashSet;

use super::batch::{Batch, FUSE_FROM, Prospect};
use super::segment::{Mode, Segment};
use crate::sql::plan::Fence;

/// The rows and tables that units touch.
#[derive(Debug, Default)]
struct Reach {
    rows: HashSet<u64>,
    tables: HashSet<u64>,
    /// Tables of which rows are touched that are not known.
    fenced: HashSet<u64>,
    /// Other tables may be touched as well.
    all: bool,
}

impl Reach {
    fn meets(&self, other: &Self) -> bool {
        let somewhere = !self.tables.is_empty() && !other.tables.is_empty();
        !self.rows.is_disjoint(&other.rows)
            || !self.fenced.is_disjoint(&other.tables)
            || !self.tables.is_disjoint(&other.fenced)
            || ((self.all || other.all) && somewhere)
    }

    fn add(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.tables.extend(other.tables);
        self.fenced.extend(other.fenced);
        self.all |= other.all;
    }
}

impl Batch<'_> {
    /// The transactions of the first round trip: all that look good in one, the others apart behind it. What follows
    /// one of these on the same row stays behind it.
    pub(super) fn first_segments(&self) -> Vec<Segment> {
        let mut good = Vec::new();
        let mut apart = Vec::new();
        let mut rows: HashSet<u64> = HashSet::new();
        for (unit, verdict) in (0_u32..).zip(&self.verdicts) {
            if verdict.is_some() {
                continue;
            }
            let keys = || self.placed.get(self.writes_of(unit)).into_iter().flatten();
            let hashes = || {
                keys()
                    .filter_map(|p| self.hashes.get(p.keys.clone()))
                    .flatten()
            };
            let mode = match self.prospects.get(unit as usize) {
                Some(Prospect::Apart(mode)) => mode.clone(),
                _ if !rows.is_empty() && hashes().any(|hash| rows.contains(hash)) => Mode::Own,
                _ => {
                    good.push(unit);
                    continue;
                }
            };
            rows.extend(hashes());
            apart.push(Segment::one(unit, mode));
        }
        let mut segments = Vec::new();
        if !good.is_empty() {
            let mode = self.mode_of(&good);
            segments.push(Segment::new(good, mode));
        }
        segments.extend(apart);
        segments
    }

    /// A lone unit needs no plan.
    fn mode_of(&self, units: &[u32]) -> Mode {
        match units {
            [unit] if self.writes_of(*unit).len() < FUSE_FROM => Mode::Own,
            _ => Mode::Sets,
        }
    }

    /// What may go out in one round trip, and what must wait for its end: a transaction of several units may have to
    /// run again, and nothing that follows it on the same rows may overtake it then.
    pub(super) fn in_order(&self, todo: Vec<Segment>) -> (Vec<Segment>, Vec<Segment>) {
        if todo.len() < 2 {
            return (todo, Vec::new());
        }
        let mut before = Reach::default();
        todo.into_iter().partition(|segment| {
            let reach = self.reach_of(&segment.units);
            let now = !before.meets(&reach);
            if !now || segment.units.len() > 1 {
                before.add(reach);
            }
            now
        })
    }

    fn reach_of(&self, units: &[u32]) -> Reach {
        let mut reach = Reach::default();
        for unit in units {
            for placed in self.placed.get(self.writes_of(*unit)).into_iter().flatten() {
                let keys = self.hashes.get(placed.keys.clone());
                reach.rows.extend(keys.into_iter().flatten());
                let shape = self.shapes.get(placed.shape as usize);
                let table = shape.map_or(u64::MAX, |c| c.table.version);
                reach.tables.insert(table);
                match placed.fence {
                    Fence::None => {}
                    Fence::Table => {
                        reach.fenced.insert(table);
                    }
                    Fence::All => reach.all = true,
                }
            }
        }
        reach
    }
}
