//! The rows that a write touches and the changes that a statement makes, for the order of a batch.

use windrow_core::{Name, Op, ParsedStatement};
use windrow_database::plan::Fence;

use crate::catalog::table::Table;
use crate::statement::parsed::{bare, given};
use crate::values::key::RowKey;

/// The effect of one write on the order of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touch {
    /// The key by which rows of a statement are sorted.
    pub(crate) order: Option<RowKey>,
    /// True if a key could not be computed.
    pub(crate) unknown: bool,
}

/// The changes that a statement makes, for the order of a batch.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) op: Op,
    /// True for an insert that changes the existing row that it meets.
    pub(crate) upsert: bool,
    /// Columns that an update changes, or that an upsert changes in the row that it meets.
    pub(crate) sets: Vec<&'a Name>,
    /// Columns by which a row is found.
    pub(crate) key: Vec<&'a Name>,
    /// True if all code that the statement runs is proven for each row.
    pub(crate) proven: bool,
}

impl<'a> Change<'a> {
    /// Returns what a statement changes. `proven`: all code that the statement runs is proven for
    /// each row.
    pub(crate) fn of(parsed: &'a ParsedStatement, proven: bool) -> Self {
        let update = parsed.conflict.as_ref().filter(|conflict| conflict.update);
        let key = match (&parsed.op, update) {
            (Op::Insert, Some(conflict)) => conflict.columns.iter().flatten().collect(),
            (Op::Insert, None) => Vec::new(),
            _ => parsed.keys.iter().map(|(name, _)| name).collect(),
        };
        let sets = match update {
            Some(conflict) => &conflict.assignments,
            None => &parsed.assignments,
        };
        Self {
            op: parsed.op,
            upsert: update.is_some(),
            sets: sets.iter().map(|(name, _)| name).collect(),
            key,
            proven,
        }
    }

    /// Returns true for a question that reads no row of the table.
    fn asks(&self) -> bool {
        self.op == Op::Get && self.key.is_empty()
    }
}

/// Returns true if the client gives each value of a row that the table would fill in.
pub(crate) fn gives_all(parsed: &ParsedStatement, table: &Table) -> bool {
    let Some(given) = given(parsed, table) else {
        return false;
    };
    let mut defaults = table.columns.iter().filter(|c| c.has_default || c.identity);
    defaults.all(|column| given.iter().any(|(name, _)| **name == column.name))
        && given.iter().all(|(_, value)| bare(value).is_some())
}

/// Returns a number that distinguishes the rows of a table and one of its keys from all others,
/// whatever name the table is called by.
pub(crate) fn seed(table: &Table, number: usize) -> u64 {
    use std::hash::BuildHasher as _;
    let state = foldhash::fast::FixedState::default();
    match table.oid() {
        Some(oid) => state.hash_one((oid, number)),
        None => state.hash_one((&table.name, number)),
    }
}

/// Returns true if a client could find out in which order a statement's rows are written: from a
/// number that the database generates, or a row that refers to another one. `given`: the client
/// gave each value.
pub(crate) fn order_shows(change: &Change<'_>, table: &Table, given: bool) -> bool {
    if change.asks() {
        return false;
    }
    let fenced = fence(change, table) != Fence::None;
    let inserts = change.op == Op::Insert;
    fenced || table.referenced || inserts && (!given || table.hidden_unique)
}

/// Returns the rows that a write of this kind may affect besides those whose keys it names.
pub(crate) fn fence(change: &Change<'_>, table: &Table) -> Fence {
    let in_unique = |name: &Name| {
        let place = table.place_of(name);
        table.hidden_unique
            || table
                .uniques
                .iter()
                .any(|u| place.is_some_and(|p| u.columns.contains(&p)))
    };
    let moves = change.sets.iter().any(|name| in_unique(name));
    // Several keys may find one row. Only the first key can show that two writes are about
    // different rows.
    let alias = (change.upsert || change.op != Op::Insert)
        && table.uniques.len() > 1
        && !table.uniques.first().is_some_and(|first| {
            let names = first.columns.iter().filter_map(|p| table.columns.get(*p));
            names
                .into_iter()
                .all(|column| change.key.contains(&&column.name))
        });
    match change.op {
        _ if change.asks() => Fence::None,
        Op::Delete if table.referenced => Fence::All,
        Op::Update if table.referenced && moves => Fence::All,
        Op::Delete if table.hidden_unique || table.uniques.len() > 1 => Fence::Table,
        Op::Update if moves => Fence::Table,
        Op::Insert if change.upsert && moves => Fence::Table,
        _ if alias || (table.has_hooks && !change.proven) => Fence::Table,
        _ => Fence::None,
    }
}
