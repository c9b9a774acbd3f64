//! A batch under way: its units, their writes joined with the tables' descriptions, and what is
//! known of each unit.

mod grow;
mod place;
mod steps;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use windrow_core::{Call, Done, Dones, Op, Shape, TableName, Unit, UnitFault, Verdict, Write};
use windrow_database::plan::Fence;
use windrow_database::sources::Sources;

pub(crate) use self::place::Asked;
pub(crate) use self::steps::may_fuse;
use super::segment::{Mode, Segment};
use crate::catalog::table::Table;
use crate::ladder::form::Compiled;
use crate::values::key::RowKey;

/// From so many writes of one shape on, one statement is cheaper than as many.
pub(crate) const FUSE_FROM: usize = 6;

/// One write in its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) unit: u32,
    pub(crate) write: u32,
    /// The place of its shape in [`Batch::shapes`].
    pub(crate) shape: u32,
    /// It may travel in a set-based statement.
    pub(crate) sets: bool,
    pub(crate) order: Option<RowKey>,
    pub(crate) keys: std::ops::Range<usize>,
    pub(crate) fence: Fence,
}

/// What is to be done with a unit at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// It will succeed, as far as is known.
    Good,
    /// As the mode says, in a transaction of its own.
    Apart(Mode),
}

/// The units and all that is found out about them.
pub(crate) struct Batch<'a> {
    pub(crate) units: &'a [Unit],
    pub(crate) sources: Sources,
    pub(crate) shapes: Vec<Arc<Compiled>>,
    pub(crate) placed: Vec<Placed>,
    pub(crate) hashes: Vec<u64>,
    /// Where each unit's writes begin in `placed`.
    starts: Vec<usize>,
    pub(crate) prospects: Vec<Prospect>,
    pub(crate) done: Vec<Done>,
    pub(crate) verdicts: Vec<Option<Verdict>>,
    /// Tables change faster than they can be described: nothing is relied on, and every unit runs
    /// by itself.
    pub(crate) distrusted: bool,
    /// Columns that Windrow made are widened for values that they would not keep as they are.
    pub(crate) creates: bool,
    /// What the calls of a unit were told before one of them failed, where it is tried once more:
    /// others may overtake it.
    remembered: Vec<(u32, Vec<Done>)>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(units: &'a [Unit]) -> Self {
        Self {
            units,
            sources: Sources::of(units),
            shapes: Vec::new(),
            placed: Vec::new(),
            hashes: Vec::new(),
            starts: Vec::new(),
            prospects: Vec::new(),
            done: Vec::new(),
            verdicts: vec![None; units.len()],
            distrusted: false,
            creates: false,
            remembered: Vec::new(),
        }
    }

    /// The tables that the batch is about, each once.
    pub(crate) fn tables(&self) -> Vec<&'a TableName> {
        let mut seen = HashSet::new();
        let mut last: Option<&Arc<Shape>> = None;
        let mut tables = Vec::new();
        for write in self.units.iter().flat_map(Unit::writes) {
            if last.is_some_and(|shape| Arc::ptr_eq(shape, &write.shape)) {
                continue;
            }
            last = Some(&write.shape);
            if seen.insert(&write.shape.table) {
                tables.push(&write.shape.table);
            }
        }
        tables
    }

    /// All units that are about the table get the verdict.
    pub(crate) fn conclude_table(&mut self, table: &TableName, verdict: &Verdict) {
        for (unit, slot) in self.units.iter().zip(&mut self.verdicts) {
            let mut writes = unit.writes().iter();
            if let Some(at) = writes.position(|w| w.shape.table == *table) {
                slot.get_or_insert_with(|| verdict.for_write(at));
            }
        }
    }

    /// All units of segments that are about the table get the verdict, and what follows them waits
    /// for them. What is left of the segments goes on.
    pub(crate) fn without_table(
        &mut self,
        segments: Vec<Segment>,
        version: u64,
        verdict: &Verdict,
    ) -> Vec<Segment> {
        for unit in segments.iter().flat_map(|segment| &segment.units) {
            let tables = self.tables_of(&[*unit]);
            if tables.iter().any(|table| table.version == version) {
                self.conclude(*unit, verdict.clone());
            }
        }
        self.hold();
        let open = |unit: &u32| matches!(self.verdicts.get(*unit as usize), Some(None));
        let rest = segments.into_iter().filter_map(|mut segment| {
            segment.units.retain(open);
            let some = !segment.units.is_empty();
            some.then(|| Segment::new(segment.units, segment.mode))
        });
        rest.collect()
    }

    /// All units whose statements are to be described anew get the verdict.
    pub(crate) fn conclude_retired(&mut self, verdict: &Verdict) {
        for (unit, slot) in self.units.iter().zip(&mut self.verdicts) {
            if unit.calls().iter().any(|call| call.statement.is_retired()) {
                slot.get_or_insert_with(|| verdict.clone());
            }
        }
    }

    /// Takes note of what the first calls of a unit that is tried once more were told.
    pub(crate) fn remember(&mut self, units: &[u32], before: Vec<Done>) {
        if let (Some(unit), false) = (units.first(), before.is_empty()) {
            self.remembered.push((*unit, before));
        }
    }

    /// What they were told at first, where they were as many as `now`.
    pub(crate) fn recall(&mut self, units: &[u32], now: Vec<Done>) -> Vec<Done> {
        let unit = units.first();
        let known = |(of, before): &(u32, Vec<Done>)| Some(of) == unit && before.len() == now.len();
        match self.remembered.iter().position(known) {
            Some(place) => self.remembered.swap_remove(place).1,
            None => now,
        }
    }

    /// Whether nothing is known any more of the SQL calls on a table.
    pub(crate) fn is_stale(&self, version: u64) -> bool {
        let mut of_table = self.shapes.iter().filter(|c| c.table.version == version);
        of_table.any(|compiled| compiled.bound_call().is_some_and(|bound| bound.stale))
    }

    /// Whether SQL calls on a table rely on the defaults of its columns.
    pub(crate) fn is_exposed(&self, version: u64) -> bool {
        let mut of_table = self.shapes.iter().filter(|c| c.table.version == version);
        of_table.any(|compiled| compiled.bound_call().is_some_and(|bound| bound.exposed))
    }

    /// Whether writes of a table update or delete, so that they may reach other tables.
    pub(crate) fn changes(&self, version: u64) -> bool {
        let mut of_table = self.shapes.iter().filter(|c| c.table.version == version);
        of_table.any(|compiled| compiled.op != Op::Insert || !compiled.plain)
    }

    /// Whether SQL calls are about a table.
    pub(crate) fn has_calls(&self, version: u64) -> bool {
        let mut of_table = self.shapes.iter().filter(|c| c.table.version == version);
        of_table.any(|compiled| compiled.bound_call().is_some())
    }

    fn any_of(&self, units: &[u32], is: impl Fn(&Compiled) -> bool) -> bool {
        units.iter().any(|unit| {
            let placed = self.placed.get(self.writes_of(*unit));
            let mut placed = placed.into_iter().flatten();
            placed.any(|placed| self.compiled(placed).is_some_and(|compiled| is(compiled)))
        })
    }

    /// Whether some units may share no transaction with others.
    pub(crate) fn has_apart(&self) -> bool {
        let mut shapes = self.shapes.iter();
        self.distrusted || shapes.any(|c| c.apart.is_some() || c.is_unproven())
    }

    /// Whether a segment is sent apart, so that nothing is relied on for it.
    pub(crate) fn is_apart(&self, segment: &Segment) -> bool {
        let apart = |compiled: &Compiled| compiled.apart.is_some();
        segment.runs() && (self.distrusted || self.any_of(&segment.units, apart))
    }

    /// Whether a segment runs code of which nothing is proven.
    pub(crate) fn is_unproven(&self, segment: &Segment) -> bool {
        segment.runs() && (self.distrusted || self.any_of(&segment.units, Compiled::is_unproven))
    }

    /// Behind unproven code the connection is as new, and has nothing prepared: what relies on that
    /// waits a round trip.
    pub(crate) fn behind_unproven(
        &self,
        now: Vec<Segment>,
        mut later: Vec<Segment>,
    ) -> (Vec<Segment>, Vec<Segment>) {
        let unproven = |segment: &Segment| self.is_unproven(segment);
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

    /// The places in `placed` of a unit's writes.
    pub(crate) fn writes_of(&self, unit: u32) -> std::ops::Range<usize> {
        let unit = unit as usize;
        let start = self.starts.get(unit).copied().unwrap_or_default();
        let end = self.starts.get(unit + 1).copied().unwrap_or(start);
        start..end
    }

    /// The write that is placed there.
    pub(crate) fn write(&self, placed: &Placed) -> Option<&'a Write> {
        let unit = self.units.get(placed.unit as usize)?;
        unit.writes().get(placed.write as usize)
    }

    /// The SQL call that is placed there.
    pub(crate) fn call(&self, placed: &Placed) -> Option<&'a Call> {
        let unit = self.units.get(placed.unit as usize)?;
        unit.calls().get(placed.write as usize)
    }

    /// The client's own text of a unit that is one simple query whose literals were lifted out.
    pub(crate) fn origin(&self, unit: u32) -> Option<&'a str> {
        match self.units.get(unit as usize)?.calls() {
            [call] => call.origin.as_deref(),
            _ => None,
        }
    }

    /// Whether a segment is one simple query in its client's own text.
    pub(crate) fn goes_by_text(&self, segment: &Segment) -> bool {
        match segment.units.as_slice() {
            [unit] => segment.mode == Mode::Fresh && self.origin(*unit).is_some(),
            _ => false,
        }
    }

    /// What is placed there is compiled to.
    pub(crate) fn compiled(&self, placed: &Placed) -> Option<&Arc<Compiled>> {
        self.shapes.get(placed.shape as usize)
    }

    /// The tables that units are about, each once.
    pub(crate) fn tables_of(&self, units: &[u32]) -> Vec<&Arc<Table>> {
        let mut tables: Vec<&Arc<Table>> = Vec::new();
        let mut last = None;
        for unit in units {
            for placed in self.placed.get(self.writes_of(*unit)).into_iter().flatten() {
                if last.replace(placed.shape) == Some(placed.shape) {
                    continue;
                }
                let Some(compiled) = self.shapes.get(placed.shape as usize) else {
                    continue;
                };
                if !tables.iter().any(|t| t.version == compiled.table.version) {
                    tables.push(&compiled.table);
                }
            }
        }
        tables
    }

    /// How many writes of each shape units have: the shape, those that may travel in sets, the
    /// others.
    pub(crate) fn counts(&self, units: &[u32]) -> Vec<(usize, usize, usize)> {
        let mut counts = vec![(0, 0); self.shapes.len()];
        for unit in units {
            for placed in self.placed.get(self.writes_of(*unit)).into_iter().flatten() {
                match counts.get_mut(placed.shape as usize) {
                    Some((sets, _)) if placed.sets => *sets += 1,
                    Some((_, singles)) => *singles += 1,
                    None => {}
                }
            }
        }
        let counted = counts.into_iter().enumerate();
        counted
            .filter(|(_, (sets, singles))| sets + singles > 0)
            .map(|(shape, (sets, singles))| (shape, sets, singles))
            .collect()
    }

    /// Whether the duplicates of a segment can be told apart by leaving them out: single plain
    /// inserts with a key, and nothing else in their tables.
    ///
    /// What is left out runs after the rest. Where a table has several unique keys, a row that is
    /// left out for one of them could free or find another one taken by its successors; so then
    /// no two rows may share a key. Where units are of one source, whose order is to show in
    /// what they are told, there is one table.
    pub(crate) fn can_tell(&self, units: &[u32]) -> bool {
        let mut plain: HashMap<u64, bool> = HashMap::new();
        let mut rows = HashSet::new();
        for unit in units {
            let writes = self.writes_of(*unit);
            let alone = writes.len() == 1;
            for placed in self.placed.get(writes).into_iter().flatten() {
                let Some(compiled) = self.shapes.get(placed.shape as usize) else {
                    return false;
                };
                let table = &compiled.table;
                let tells = compiled.telling.is_some();
                let same = *plain.entry(table.identity()).or_insert(tells);
                let several = tells && (table.hidden_unique || table.uniques.len() > 1);
                let keys = self.hashes.get(placed.keys.clone()).unwrap_or_default();
                let shared = several && keys.iter().any(|key| !rows.insert(*key));
                if same != tells || (tells && !alone) || shared {
                    return false;
                }
            }
        }
        let tables = !self.sources.any() || plain.len() == 1;
        tables && plain.values().any(|tells| *tells)
    }

    /// The unit is answered with what its writes were told.
    pub(crate) fn succeed(&mut self, unit: u32) {
        let writes = self.writes_of(unit);
        let dones: Dones = self
            .done
            .get_mut(writes)
            .map(|dones| dones.iter_mut().map(std::mem::take).collect())
            .unwrap_or_default();
        self.conclude(unit, Verdict::Told(Ok(dones)));
    }

    /// The unit is answered with a failure.
    pub(crate) fn fail(&mut self, unit: u32, fault: impl Into<UnitFault>) {
        self.conclude(unit, Verdict::Told(Err(fault.into())));
    }

    /// The unit gets its verdict.
    pub(crate) fn conclude(&mut self, unit: u32, verdict: Verdict) {
        if let Some(slot) = self.verdicts.get_mut(unit as usize) {
            *slot = Some(verdict);
        }
    }

    /// Behind a unit that is to run again or alone, the later ones of its source wait for it.
    pub(crate) fn hold(&mut self) {
        if !self.sources.any() {
            return;
        }
        for unit in 0_u32.. {
            match self.verdicts.get(unit as usize) {
                Some(Some(Verdict::Again(_) | Verdict::Alone(_))) => self.hold_behind(unit),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// The later units of a unit's source wait for it.
    pub(crate) fn hold_behind(&mut self, unit: u32) {
        for follower in self.sources.followers(unit) {
            if let Some(slot) = self.verdicts.get_mut(follower as usize) {
                slot.get_or_insert(Verdict::Held);
            }
        }
    }

    /// The units without a verdict.
    pub(crate) fn pending(&self) -> Vec<u32> {
        let numbered = (0_u32..).zip(&self.verdicts);
        let pending = numbered.filter(|(_, verdict)| verdict.is_none());
        pending.map(|(unit, _)| unit).collect()
    }

    /// All units without a verdict get this one.
    pub(crate) fn conclude_rest(&mut self, verdict: &Verdict) {
        for slot in &mut self.verdicts {
            slot.get_or_insert_with(|| verdict.clone());
        }
    }
}
