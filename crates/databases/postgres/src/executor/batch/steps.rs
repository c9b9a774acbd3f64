//! The order of a segment's statements, and of the rows within them.
//!
//! Every lane locks rows in the order of their keys, because otherwise two lanes could deadlock. If
//! the order of one source's writes can be observed, they stay in the order in which they were
//! sent: generated numbers rise in that order, and no row refers to a later one. Then a source's
//! writes stay together, and the sources are sorted.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use windrow_core::Op;
use windrow_database::plan::{self, Bonds, Fence, Item, Step};

use super::{Batch, FUSE_FROM};
use crate::catalog::table::Table;
use crate::executor::segment::{Mode, Segment};
use crate::values::key::RowKey;

/// The group of writes that are sent one by one, whatever their shapes are.
const ONE_BY_ONE: u32 = 1;

/// Returns the shape of a step whose writes may become one statement.
pub(crate) fn may_fuse(step: &Step) -> Option<usize> {
    plan::shape_of(step.group).map(|shape| shape as usize)
}

impl Batch<'_> {
    /// Returns the steps of a segment: the planned ones, or one step that sends each write by
    /// itself.
    pub(crate) fn steps(&self, segment: &Segment) -> Vec<Step> {
        let places = segment.units.iter().flat_map(|unit| self.writes_of(*unit));
        let places: Vec<usize> = places.collect();
        if !matches!(segment.mode, Mode::Sets | Mode::Telling) {
            return vec![Step {
                group: ONE_BY_ONE,
                items: numbers(places),
            }];
        }
        let mut tables = HashMap::new();
        let bonds = self.bonds();
        let items = places.iter().filter_map(|place| {
            let placed = self.placed.get(*place)?;
            let alone = placed.sets && placed.fence == Fence::None;
            let compiled = self.shapes.get(placed.shape as usize)?;
            let next = u32::try_from(tables.len()).unwrap_or(u32::MAX);
            let table = *tables
                .entry(compiled.table.identity(compiled.table.version))
                .or_insert(next);
            Some(Item {
                group: plan::group_of(placed.shape, placed.sets),
                unit: placed.unit,
                source: self.sources.of_unit(placed.unit),
                table,
                keys: self.hashes.get(placed.keys.clone()).unwrap_or_default(),
                reads: compiled.op == Op::Get,
                fence: placed.fence,
                free: placed.fence == Fence::None && !compiled.order_shows,
                bonds: bonds
                    .get(placed.shape as usize)
                    .copied()
                    .flatten()
                    .filter(|_| alone),
            })
        });
        let mut steps = plan::plan(items);
        for item in steps.iter_mut().flat_map(|step| &mut step.items) {
            let place = places.get(*item as usize).copied().unwrap_or_default();
            *item = u32::try_from(place).unwrap_or(u32::MAX);
        }
        if segment.mode == Mode::Sets {
            steps = self.unite(steps);
        }
        for step in &mut steps {
            self.arrange(step);
        }
        steps
    }

    /// Returns, for each shape, the foreign keys that limit how its inserts may be joined with rows
    /// of other tables. Returns nothing if each unit is one write, or if clients wrote the
    /// statements themselves: these run as they are.
    fn bonds(&self) -> Vec<Option<Bonds>> {
        if self.is_of_calls || self.placed.len() <= self.units.len() {
            return Vec::new();
        }
        let shapes = self.shapes.iter();
        shapes
            .map(|compiled| {
                let table = &compiled.table;
                // An insert into a partitioned table also writes to a partition, and other writes
                // may name that partition.
                let partitioned = table.print.as_ref().is_some_and(|p| p.oids.len() > 1);
                let by_itself = !partitioned && !table.has_hooks && !self.may_tell_order(table);
                (compiled.op == Op::Insert && by_itself).then_some(
                    match (table.refers, table.referenced) {
                        (true, true) => Bonds::Both,
                        (true, false) => Bonds::Refers,
                        (false, true) => Bonds::Referred,
                        (false, false) => Bonds::Neither,
                    },
                )
            })
            .collect()
    }

    /// Returns true if the defaults of a table can show whether its rows were written before those
    /// of another table: by a sequence that both tables use, or by a clock. Only two kinds of
    /// default surely cannot: one with a single value for the whole transaction, and a sequence
    /// that no other table of the batch uses.
    fn may_tell_order(&self, table: &Table) -> bool {
        let identity = |table: &Table| table.identity(table.version);
        let others = || {
            let tables = self.shapes.iter().map(|compiled| &compiled.table);
            tables.filter(|other| identity(other) != identity(table))
        };
        let mut generated = table.columns.iter().filter(|c| c.has_default || c.identity);
        generated.any(|column| match column.default.as_deref() {
            // The sequence of a domain's default is not known.
            Some(text) if text.starts_with("nextval(") => {
                column.sequence == 0 || others().any(|other| takes_from(other, column.sequence))
            }
            Some(text) => text.contains('(') && text != "now()",
            None => true,
        })
    }

    /// Joins neighbouring steps of one table that are too small for a statement of their own. Their
    /// writes are sorted together.
    fn unite(&self, steps: Vec<Step>) -> Vec<Step> {
        let from = |shape: usize| self.shapes.get(shape).map_or(FUSE_FROM, |c| c.fuse_from());
        let is_small =
            |step: &Step| may_fuse(step).is_none_or(|shape| step.items.len() < from(shape));
        let mut united: Vec<Step> = Vec::with_capacity(steps.len());
        for step in steps {
            let small = is_small(&step) && self.is_free_of_fences(&step);
            match united.last_mut() {
                Some(last)
                    if small && last.group == ONE_BY_ONE && self.is_of_table_of(last, &step) =>
                {
                    last.items.extend(step.items);
                }
                _ if small => united.push(Step {
                    group: ONE_BY_ONE,
                    ..step
                }),
                _ => united.push(step),
            }
        }
        united
    }

    fn is_of_table_of(&self, one: &Step, other: &Step) -> bool {
        let table = |step: &Step| step.items.first().map(|item| self.lock_of(*item).0);
        table(one) == table(other)
    }

    fn is_free_of_fences(&self, step: &Step) -> bool {
        let placed = |item: &u32| self.placed.get(*item as usize);
        let fence = |item| placed(item).map_or(Fence::All, |p| p.fence);
        step.items.iter().all(|item| fence(item) == Fence::None)
    }

    /// Sorts the writes of a step by the order in which they lock their rows.
    fn arrange(&self, step: &mut Step) {
        if step.items.len() < 2 {
            return;
        }
        let fuses = may_fuse(step).is_some();
        if !fuses && !self.is_free_of_fences(step) {
            return;
        }
        // Stable: rows without a key stay in the order of the batch.
        if fuses && !self.tells_order(step) {
            return step.items.sort_by_key(|item| self.lock_of(*item));
        }
        let mut chains = self.chains(step);
        chains.sort_by_key(|(lock, _)| *lock);
        step.items = chains.into_iter().flat_map(|(_, items)| items).collect();
    }
}

/// The sort key of rows: their table, and their place in it.
type Lock = (u64, Option<RowKey>);

/// A reason to keep two writes in their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Link {
    Source(u32),
    Unit(u32),
    Row(u64),
}

impl Batch<'_> {
    /// Returns true if the order of one source's rows can be observed.
    fn tells_order(&self, step: &Step) -> bool {
        let several = self.sources.any() || self.placed.len() > self.units.len();
        let shows = |item: &u32| {
            let placed = self.placed.get(*item as usize);
            let compiled = placed.and_then(|placed| self.compiled(placed));
            compiled.is_none_or(|compiled| compiled.order_shows)
        };
        several && step.items.first().is_some_and(shows)
    }

    fn lock_of(&self, item: u32) -> Lock {
        let placed = self.placed.get(item as usize);
        let order = placed.and_then(|placed| placed.order);
        (placed.map_or(0, |placed| self.identity_of(placed)), order)
    }

    /// Groups writes of one source, one unit or one row into chains that keep their order. Each
    /// chain has the first of the locks that it takes.
    fn chains(&self, step: &Step) -> Vec<(Lock, Vec<u32>)> {
        let mut chains: Vec<(Lock, Vec<u32>)> = Vec::new();
        let mut linked: HashMap<Link, usize, RandomState> = HashMap::default();
        for item in &step.items {
            let links = self.links(*item, may_fuse(step).is_some());
            let mut known: Vec<usize> = links
                .iter()
                .filter_map(|link| linked.get(link).copied())
                .collect();
            known.sort_unstable();
            known.dedup();
            let chain = known.first().copied().unwrap_or(chains.len());
            if chain == chains.len() {
                chains.push((self.lock_of(*item), Vec::new()));
            }
            // This write joins chains that were separate: their places in the step give the order.
            let mut items = vec![*item];
            let mut lock = self.lock_of(*item);
            for other in known.into_iter().skip(1) {
                if let Some((of_other, more)) = chains.get_mut(other) {
                    lock = lock.min(*of_other);
                    items.splice(0..0, std::mem::take(more));
                }
                for to in linked.values_mut().filter(|to| **to == other) {
                    *to = chain;
                }
            }
            if let Some((first, all)) = chains.get_mut(chain) {
                *first = lock.min(*first);
                all.append(&mut items);
            }
            linked.extend(links.into_iter().map(|link| (link, chain)));
        }
        chains.retain(|(_, items)| !items.is_empty());
        chains
    }

    fn links(&self, item: u32, fuses: bool) -> Vec<Link> {
        let Some(placed) = self.placed.get(item as usize) else {
            return Vec::new();
        };
        let source = self.sources.of_unit(placed.unit).map(Link::Source);
        let mut links = vec![source.unwrap_or(Link::Unit(placed.unit))];
        // Rows of one statement are all different.
        if !fuses {
            links.extend(self.keys_of(placed).iter().map(|key| Link::Row(*key)));
        }
        links
    }
}

fn numbers(places: Vec<usize>) -> Vec<u32> {
    let number = |place| u32::try_from(place).unwrap_or(u32::MAX);
    places.into_iter().map(number).collect()
}

/// Returns true if a column of a table may take its default from a sequence.
fn takes_from(table: &Table, sequence: u32) -> bool {
    table.columns.iter().any(|column| {
        let text = column.default.as_deref();
        let is_next = text.is_some_and(|text| text.starts_with("nextval("));
        is_next && (column.sequence == 0 || column.sequence == sequence)
    })
}
