//! Orders the statements of a transaction, and the rows within them.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::Op;
use windrow_database::plan::{self, Bonds, Fence, Item, Step};

use super::Batch;
use crate::catalog::table::Table;
use crate::executor::plan::Compiled;
use crate::values::key::Canon;

impl Batch<'_> {
    /// Returns the statements of units in their order, with the places of their writes. The writes
    /// of a step whose group is even may become one statement.
    pub(crate) fn steps(&self, units: &[u32]) -> Vec<Step> {
        let places = units.iter().flat_map(|unit| self.writes_of(*unit));
        let places: Vec<usize> = places.collect();
        self.steps_at(&places)
    }

    /// Returns the statements of the writes at these places.
    pub(crate) fn steps_at(&self, places: &[usize]) -> Vec<Step> {
        let bonds = self.bonds();
        let items = places.iter().filter_map(|place| {
            let bound = self.bound.get(*place)?;
            let source = self.sources.of_unit(bound.unit);
            let bonds = bonds.get(bound.shape as usize).copied().flatten();
            let bonds = bonds.filter(|_| bound.sets && bound.fence == Fence::None);
            Some(Item {
                group: plan::group_of(bound.shape, bound.sets),
                unit: bound.unit,
                source,
                table: u32::try_from(bound.compiled.table.version).unwrap_or(u32::MAX),
                keys: self.hashes.get(bound.keys.clone()).unwrap_or_default(),
                reads: bound.compiled.shape.op == Op::Get,
                fence: bound.fence,
                // A source's rows may be answered in parts, which shows their order.
                free: bonds.is_some() && source.is_none() && !bound.compiled.table.counts(),
                bonds,
            })
        });
        let mut steps = plan::plan(numbered(items));
        for step in &mut steps {
            for item in &mut step.items {
                let place = places.get(*item as usize).copied().unwrap_or_default();
                *item = u32::try_from(place).unwrap_or(u32::MAX);
            }
            let canon = |item: &u32| {
                self.bound
                    .get(*item as usize)
                    .and_then(|p| p.canon.as_ref())
            };
            // All statements lock rows in one order. If the key of a row is unknown, all stay in
            // the order of the batch.
            if plan::shape_of(step.group).is_some() && step.items.iter().all(|i| canon(i).is_some())
            {
                let firsts = self.first_of_each(&step.items);
                // Computed once for each row, and not for each comparison.
                let first = |item: &u32| firsts.get(&self.chain(*item)).copied().or(canon(item));
                step.items.sort_by_cached_key(first);
            }
        }
        steps
    }

    /// Returns, for each shape, the foreign keys that may join its inserts with rows of other
    /// tables; `None` for a table that is in the batch by several names.
    fn bonds(&self) -> Vec<Option<Bonds>> {
        let mut names = HashMap::new();
        for compiled in &self.shapes {
            let table = &compiled.table;
            let versions: &mut Vec<u64> = names.entry(spelling(table)).or_default();
            if !versions.contains(&table.version) {
                versions.push(table.version);
            }
        }
        let several = |table: &Table| names.get(&spelling(table)).is_none_or(|v| v.len() > 1);
        let bonds = |compiled: &Arc<Compiled>| {
            let table = &compiled.table;
            let inserts = compiled.shape.op == Op::Insert && !several(table);
            let inserts = inserts && !table.takes_from_sequences();
            inserts.then_some(match table.refers() {
                true => Bonds::Both,
                false => Bonds::Referred,
            })
        };
        self.shapes.iter().map(bonds).collect()
    }

    /// Returns the source or unit whose rows stay together and in their order: generated numbers
    /// rise in that order, and a row may refer to an earlier one.
    fn chain(&self, item: u32) -> Option<(bool, u32)> {
        let unit = self.bound.get(item as usize)?.unit;
        let source = self.sources.of_unit(unit);
        Some(source.map_or((false, unit), |source| (true, source)))
    }

    /// Returns the first key of each source or unit; nothing if each has one write.
    fn first_of_each(&self, items: &[u32]) -> HashMap<Option<(bool, u32)>, &Canon> {
        let mut firsts = HashMap::new();
        if !self.sources.any() && self.bound.len() <= self.units.len() {
            return firsts;
        }
        for item in items {
            let bound = self.bound.get(*item as usize);
            if let Some(canon) = bound.and_then(|bound| bound.canon.as_ref()) {
                let first = firsts.entry(self.chain(*item)).or_insert(canon);
                *first = canon.min(*first);
            }
        }
        firsts
    }
}

/// Numbers tables from 0 without gaps, as the planner needs them.
fn numbered<'i>(items: impl Iterator<Item = Item<'i>>) -> impl Iterator<Item = Item<'i>> {
    let mut tables: HashMap<u32, u32> = HashMap::new();
    items.map(move |item| {
        let next = u32::try_from(tables.len()).unwrap_or(u32::MAX);
        let table = *tables.entry(item.table).or_insert(next);
        Item { table, ..item }
    })
}

/// Returns a table's name without its schema, in lower case.
fn spelling(table: &Table) -> String {
    table.name.table.to_lowercase()
}
