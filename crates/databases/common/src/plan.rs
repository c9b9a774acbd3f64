//! Plans the statements of a batch: which writes become one statement, and the order of the
//! statements.
//!
//! Pure: takes what the writes touch, and returns steps. The rules, which the tests check on random
//! batches:
//!
//! - Two writes that touch the same row run in the order of the batch, never in one statement (two
//!   reads may).
//! - The units of one source run in their order: no step of a unit comes before one of an earlier
//!   unit. Units are in one statement only if all between them are in it too. Writes of one table
//!   that are [`Item::free`] may change places with each other.
//! - The writes of one unit keep their order in the same way, except inserts into different tables
//!   whose rows cannot refer to each other ([`Item::bonds`]): these may change places too, because
//!   no other session sees any of them before all are done.
//! - A write with a [`Fence`] keeps its place among all the writes of other groups that the fence
//!   concerns.
//! - All else is free. Units that wait at the same time were requested concurrently, so writes of
//!   different rows may change places, and a group whose writes are scattered over the batch still
//!   becomes one statement.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

/// The rows that a write may affect besides those whose keys it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fence {
    /// No other rows.
    #[default]
    None,
    /// Other rows of its table: its key is not known, or it frees or takes a second unique key.
    Table,
    /// Rows of other tables too, as a delete that cascades.
    All,
}

/// The foreign keys between the rows of a table and those of other tables, if they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bonds {
    /// Rows may refer to others, and others to them.
    Both,
    /// Rows may refer to others. No row refers to them.
    Refers,
    /// Others may refer to its rows, which refer to none.
    Referred,
    /// Neither.
    Neither,
}

impl Bonds {
    /// True if a row of one table may refer to a row of the other one.
    fn join(self, other: Self) -> bool {
        let refers = |bonds| matches!(bonds, Self::Both | Self::Refers);
        let referred = |bonds| matches!(bonds, Self::Both | Self::Referred);
        refers(self) && referred(other) || refers(other) && referred(self)
    }
}

/// The properties of a write that decide its place in the order.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Writes of one group may become one statement. Numbered from 0, without large gaps.
    pub group: u32,
    /// The unit of the write; a unit's items are consecutive.
    pub unit: u32,
    /// The write's source, if another unit of the batch has the same source. Numbered from 0,
    /// without large gaps.
    pub source: Option<u32>,
    /// The write's table. Numbered from 0, without large gaps.
    pub table: u32,
    /// Hashes of the rows that the write touches; rows of different tables have different ones. A
    /// collision only costs a statement.
    pub keys: &'a [u64],
    /// True if the write only reads.
    pub reads: bool,
    /// The other rows that the write may affect.
    pub fence: Fence,
    /// True if no client can observe whether the write came before or after other free writes of
    /// its table in the same transaction, unless they touch the same rows.
    pub free: bool,
    /// For an insert that other tables can only notice through foreign keys: those foreign keys.
    /// `None` if the write keeps its place in its unit.
    pub bonds: Option<Bonds>,
}

/// Returns the group of writes of one shape. `sets`: true if they may become one statement; the
/// others of the shape have a group of their own.
pub fn group_of(shape: u32, sets: bool) -> u32 {
    shape * 2 + u32::from(!sets)
}

/// Returns the shape of a group whose writes may become one statement.
pub fn shape_of(group: u32) -> Option<u32> {
    group.is_multiple_of(2).then_some(group / 2)
}

/// One or more writes of one group that may run as one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The group.
    pub group: u32,
    /// Positions in the batch, ascending.
    pub items: Vec<u32>,
}

/// Forms steps greedily: a write joins the first step of its group that is late enough, or opens
/// one at the end.
pub fn plan<'a>(items: impl IntoIterator<Item = Item<'a>>) -> Vec<Step> {
    let mut planner = Planner::default();
    for item in items {
        planner.place(&item);
    }
    planner.steps
}

/// One more than the last step of some kind, which is the first step that a later write may use; 0
/// if there is no such step.
type Next = u32;

#[derive(Clone, Copy, Default)]
struct Row {
    after_writes: Next,
    after_all: Next,
}

/// The steps of a group within a table, or within the whole batch.
#[derive(Clone, Copy)]
struct Reach {
    group: u32,
    after_fences: Next,
    after_all: Next,
}

#[derive(Default)]
struct Planner {
    steps: Vec<Step>,
    placed: u32,
    rows: HashMap<u64, Row, RandomState>,
    tables: Vec<Vec<Reach>>,
    whole: Vec<Reach>,
    steps_of: Vec<Vec<u32>>,
    unit: Within,
    sources: Vec<Course>,
}

/// The steps of a unit so far.
#[derive(Default)]
struct Within {
    unit: Option<u32>,
    /// The last step of each kind of its writes.
    kinds: SmallVec<[(ShapeKind, u32); 4]>,
}

/// The properties of a write that decide with which other writes of its unit it may change places.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ShapeKind {
    table: u32,
    free: bool,
    bonds: Option<Bonds>,
}

impl ShapeKind {
    fn of(item: &Item<'_>) -> Self {
        Self {
            table: item.table,
            free: item.free,
            bonds: item.bonds,
        }
    }

    /// True if no client can observe which of the two came first.
    fn changes_places_with(self, other: Self) -> bool {
        match (self.bonds, other.bonds) {
            (Some(_), Some(_)) if self.table == other.table => self.free && other.free,
            (Some(one), Some(two)) => !one.join(two),
            _ => false,
        }
    }
}

impl Within {
    /// Returns the first step that the next write may use.
    fn earliest(&self, item: &Item<'_>) -> u32 {
        if self.unit != Some(item.unit) {
            return 0;
        }
        let kind = ShapeKind::of(item);
        let behind = self
            .kinds
            .iter()
            .filter(|(before, _)| !before.changes_places_with(kind));
        behind.map(|(_, step)| *step).max().unwrap_or(0)
    }

    fn note(&mut self, item: &Item<'_>, step: u32) {
        if self.unit.replace(item.unit) != Some(item.unit) {
            self.kinds.clear();
        }
        let kind = ShapeKind::of(item);
        match self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, last)) => *last = step.max(*last),
            None => self.kinds.push((kind, step)),
        }
    }
}

/// The steps of a source so far.
#[derive(Default)]
struct Course {
    /// The last step of its writes that are not free.
    firm: u32,
    /// The last step of the other writes, by table.
    free: SmallVec<[(u32, u32); 2]>,
}

impl Course {
    /// Returns the first step that the source's next write may use.
    fn earliest(&self, item: &Item<'_>) -> u32 {
        let others = self.free.iter();
        let behind = others.filter(|(table, _)| !item.free || *table != item.table);
        behind.map(|(_, step)| *step).fold(self.firm, u32::max)
    }

    fn note(&mut self, item: &Item<'_>, step: u32) {
        if !item.free {
            self.firm = self.firm.max(step);
            return;
        }
        match self.free.iter_mut().find(|(table, _)| *table == item.table) {
            Some((_, last)) => *last = step.max(*last),
            None => self.free.push((item.table, step)),
        }
    }
}

impl Planner {
    fn place(&mut self, item: &Item<'_>) {
        let step = self.step_for(item, self.earliest(item));
        if let Some(found) = self.steps.get_mut(step as usize) {
            found.items.push(self.placed);
        }
        self.placed += 1;
        self.note(item, step);
    }

    /// Returns the first step that the order allows.
    fn earliest(&self, item: &Item<'_>) -> u32 {
        let mut earliest = self.unit.earliest(item);
        if let Some(course) = item.source.and_then(|s| self.sources.get(s as usize)) {
            earliest = earliest.max(course.earliest(item));
        }
        for row in item.keys.iter().filter_map(|key| self.rows.get(key)) {
            let after = if item.reads {
                row.after_writes
            } else {
                row.after_all
            };
            earliest = earliest.max(after);
        }
        if let Some(reaches) = self.tables.get(item.table as usize) {
            earliest = earliest.max(behind(reaches, item.group, item.fence >= Fence::Table));
        }
        earliest.max(behind(&self.whole, item.group, item.fence == Fence::All))
    }

    /// Returns the step that the item joins. Opens one if needed.
    fn step_for(&mut self, item: &Item<'_>, earliest: u32) -> u32 {
        let mine = slot(&mut self.steps_of, item.group);
        let late_enough = mine.partition_point(|step| *step < earliest);
        if let Some(step) = mine.get(late_enough) {
            return *step;
        }
        let step = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        mine.push(step);
        self.steps.push(Step {
            group: item.group,
            items: Vec::new(),
        });
        step
    }

    fn note(&mut self, item: &Item<'_>, step: u32) {
        let next = step + 1;
        for key in item.keys {
            let row = self.rows.entry(*key).or_default();
            row.after_all = row.after_all.max(next);
            if !item.reads {
                row.after_writes = row.after_writes.max(next);
            }
        }
        let fenced = item.fence >= Fence::Table;
        reach(slot(&mut self.tables, item.table), item.group, next, fenced);
        reach(&mut self.whole, item.group, next, item.fence == Fence::All);
        self.unit.note(item, step);
        if let Some(source) = item.source {
            slot(&mut self.sources, source).note(item, step);
        }
    }
}

/// Returns the first step that the writes of other groups allow.
fn behind(reaches: &[Reach], group: u32, fenced: bool) -> Next {
    let others = reaches.iter().filter(|reach| reach.group != group);
    let demands = others.map(|reach| {
        if fenced {
            reach.after_all
        } else {
            reach.after_fences
        }
    });
    demands.max().unwrap_or(0)
}

fn reach(reaches: &mut Vec<Reach>, group: u32, next: Next, fenced: bool) {
    let fences = if fenced { next } else { 0 };
    match reaches.iter_mut().find(|reach| reach.group == group) {
        Some(reach) => {
            reach.after_all = reach.after_all.max(next);
            reach.after_fences = reach.after_fences.max(fences);
        }
        None => reaches.push(Reach {
            group,
            after_fences: fences,
            after_all: next,
        }),
    }
}

/// Returns the entry of a number. Extends the list if needed.
fn slot<T: Default>(list: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if list.len() <= number {
        list.resize_with(number + 1, T::default);
    }
    #[expect(
        clippy::indexing_slicing,
        reason = "the list was grown in the line above"
    )]
    &mut list[number]
}

#[cfg(test)]
mod tests;
