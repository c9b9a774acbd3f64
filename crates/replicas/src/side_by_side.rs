//! Compares a table with rows read in bulk: each row is read once at each end, in the order of its
//! key, and the two are compared here.
//!
//! No two kinds of database write all values in the same way, so their own checksums of the same
//! rows differ. Rows are matched by their keys and compared value by value. Rows that seem to
//! differ are looked up by their keys, and only that result counts. So different orders or forms of
//! keys only cost time.

use std::collections::HashMap;

use windrow_core::Row;
use windrow_core::{Fault, Inventory, KeyRange, KeyedTable, Name, Retry, RowPage, Value};

use crate::alike::{KeyForm, alike, key_form};
use crate::comparison::{Checked, Comparison, KEYS};

/// A table at both ends, with the same key and these columns at both, the key's among them.
pub(crate) struct Sides<'a> {
    pub(crate) primary: (&'a dyn Inventory, &'a KeyedTable),
    pub(crate) replica: (&'a dyn Inventory, &'a KeyedTable),
    pub(crate) columns: &'a [Name],
    /// The positions of the key's columns.
    pub(crate) key: Box<[usize]>,
}

/// Rows of the primary without a matching row of the replica so far.
type Unmatched = HashMap<KeyForm, Row>;

impl Sides<'_> {
    /// Compares the rows of a range.
    pub(crate) async fn compare(
        &self,
        range: KeyRange<'_>,
        comparison: &mut Comparison<'_>,
        checked: &mut Checked,
    ) -> Result<(), Fault> {
        let (side, table) = self.primary;
        let (mut here, mut there) = (range.after.map(Row::from), range.after.map(Row::from));
        loop {
            let rest = KeyRange {
                after: here.as_deref(),
                ..range
            };
            let rows = side.rows(&page(table, self.columns, rest)).await?;
            checked.rows += rows.len() as u64;
            let end = rows.last().filter(|_| rows.len() == KEYS);
            let end = end.map(|row| self.key_of(row));
            let mut looked_up = Vec::new();
            let mut left = self.by_key(rows, &mut looked_up);
            let to = end.as_deref().or(range.to);
            let same = self.take(&mut there, to, &mut left, comparison, checked);
            looked_up.extend(same.await?);
            looked_up.extend(left.into_values().map(|row| self.key_of(&row)));
            comparison.part(looked_up, false, checked).await?;
            match end {
                Some(end) => here = Some(end),
                None => return Ok(()),
            }
        }
    }

    /// Reads the rows of the replica after `there` up to a key, advances `there`, and removes
    /// matching rows from `left`. Returns the keys of those that do not match. Rows that only the
    /// replica seems to have are looked up.
    ///
    /// `there` is a key of the replica's own, so that in its order no row is read twice or skipped,
    /// whatever the order of the primary is.
    async fn take(
        &self,
        there: &mut Option<Row>,
        to: Option<&[Value]>,
        left: &mut Unmatched,
        comparison: &mut Comparison<'_>,
        checked: &mut Checked,
    ) -> Result<Vec<Row>, Fault> {
        let (side, table) = self.replica;
        let mut differing = Vec::new();
        loop {
            let range = KeyRange {
                after: there.as_deref(),
                to,
            };
            let rows = match side.rows(&page(table, self.columns, range)).await {
                Ok(rows) => rows,
                // The replica cannot read the primary's key: these rows are read with the next
                // range.
                Err(fault) if to.is_some() && fault.retry() == Retry::Never => {
                    return Ok(differing);
                }
                Err(fault) => return Err(fault),
            };
            let found = rows.len();
            if let Some(last) = rows.last() {
                *there = Some(self.key_of(last));
            }
            let mut strange = Vec::new();
            for row in rows {
                let key = self.key_of(&row);
                match left.remove(&key_form(&key)) {
                    None => strange.push(key),
                    Some(own) if own.iter().zip(&*row).all(|(a, b)| alike(a, b)) => {}
                    Some(own) => differing.push(self.key_of(&own)),
                }
            }
            comparison.part(strange, true, checked).await?;
            if found < KEYS {
                return Ok(differing);
            }
        }
    }

    /// Returns rows by their keys. Keys with the same form are looked up.
    fn by_key(&self, rows: Vec<Row>, looked_up: &mut Vec<Row>) -> Unmatched {
        let mut by_key = HashMap::with_capacity(rows.len());
        for row in rows {
            let form = key_form(&self.key_of(&row));
            if let Some(other) = by_key.insert(form, row) {
                looked_up.push(self.key_of(&other));
            }
        }
        by_key
    }

    fn key_of(&self, row: &Row) -> Row {
        let places = self.key.iter();
        places
            .filter_map(|place| row.get(*place).cloned())
            .collect()
    }
}

/// Returns the first page of a range of keys.
fn page<'a>(table: &'a KeyedTable, columns: &'a [Name], range: KeyRange<'a>) -> RowPage<'a> {
    RowPage {
        after: range.after,
        to: range.to,
        ..RowPage::of(&table.name, columns, &table.key, KEYS)
    }
}
