//! The port between replicas and a database: which tables it has, what names their rows, and which
//! rows are there.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use crate::fault::Fault;
use crate::name::{Name, TableName};
use crate::value::Value;
use crate::write::Row;

/// A table, as far as its rows are followed by their primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedTable {
    /// The one name for it, whatever it was asked for by: without a schema where it is found
    /// without.
    pub name: TableName,
    /// The columns of the primary key, in its order; none where there is no primary key, or the
    /// table is none (a view).
    pub key: Box<[Name]>,
    /// All columns, in the table's order.
    pub columns: Box<[Name]>,
    /// Those that are computed from others, and can be given no value.
    pub generated: Box<[Name]>,
    /// A value that is given for a column of the key is stored there as it is: no trigger changes
    /// it, and its type neither rounds it nor cuts it off.
    pub keeps_key: bool,
}

/// The one row that a write may change, by the primary key of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRow {
    /// The table, by a name that means it to everybody: with its schema, where it has one.
    pub table: TableName,
    /// The columns of the primary key.
    pub columns: Arc<[Name]>,
    /// Their values; `None`: the write takes it from a sequence.
    pub values: Box<[Option<Value>]>,
}

/// Rows by their keys: behind one, up to and with another; `None`: without an end there.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyRange<'a> {
    /// The last key before it.
    pub after: Option<&'a [Value]>,
    /// Its last key.
    pub to: Option<&'a [Value]>,
}

/// What is told of the rows of a range in place of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSum {
    /// How many there are.
    pub rows: u64,
    /// The sum of their checksums.
    pub sum: Box<str>,
}

/// A database that sums rows up by itself, so that they can be compared without being read.
#[async_trait]
pub trait RowSums: Send + Sync {
    /// What its sums are of: those of one form are equal where the rows are. That equal rows have
    /// other sums (in a column of another type, say) is no harm; the rows are compared then.
    fn form(&self) -> &'static str;

    /// The key at which so many rows of a range end; `None`: it has fewer. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn end_of(
        &self,
        table: &KeyedTable,
        range: KeyRange<'_>,
        rows: usize,
    ) -> Result<Option<Row>, Fault>;

    /// The sum of some columns of the rows of a range. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn sum(
        &self,
        table: &KeyedTable,
        columns: &[Name],
        range: KeyRange<'_>,
    ) -> Result<RowSum, Fault>;
}

/// The tables of a database.
#[async_trait]
pub trait Inventory: Send + Sync + 'static {
    /// Whether tables lie in schemas.
    fn has_schemas(&self) -> bool;

    /// The ordinary tables, by their one name. One that refers to others stands behind them, as
    /// far as that is possible. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn tables(&self) -> Result<Vec<TableName>, Fault>;

    /// What a table is like; `None`: there is none of that name. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn table(&self, name: &TableName) -> Result<Option<KeyedTable>, Fault>;

    /// Some columns of the rows of a range, in an order of keys that is the database's own, `most`
    /// rows at most. Fewer say that there are no more. Cancel safe.
    ///
    /// # Errors
    /// What the database says. An end of the range that it cannot read is no fault that passes.
    async fn rows(
        &self,
        table: &KeyedTable,
        columns: &[Name],
        range: KeyRange<'_>,
        most: usize,
    ) -> Result<Vec<Row>, Fault>;

    /// The keys of rows behind a key, as [`Inventory::rows`]. `after`: the last key that was given.
    ///
    /// # Errors
    /// What the database says.
    async fn keys(
        &self,
        table: &KeyedTable,
        after: Option<&[Value]>,
        most: usize,
    ) -> Result<Vec<Row>, Fault> {
        let range = KeyRange { after, to: None };
        self.rows(table, &table.key, range, most).await
    }

    /// The same database as one that sums rows up by itself; `None` where it cannot.
    fn sums(&self) -> Option<&dyn RowSums> {
        None
    }

    /// Waits until all transactions that are under way when it is asked have ended: what they have
    /// written can be read then. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn settled(&self) -> Result<(), Fault>;
}

/// Puts tables behind those that they refer to. `references`: a table, and one that it refers to.
/// Where tables refer to each other in a circle, one of them comes first all the same.
pub fn parents_first(
    tables: Vec<TableName>,
    references: &[(TableName, TableName)],
) -> Vec<TableName> {
    let mut placed: HashSet<TableName> = HashSet::new();
    let (mut ordered, mut left) = (Vec::with_capacity(tables.len()), tables);
    while !left.is_empty() {
        let is_free = |table: &TableName| {
            let mut parents = references.iter().filter(|(child, _)| child == table);
            parents.all(|(_, parent)| {
                parent == table || placed.contains(parent) || !left.contains(parent)
            })
        };
        let free: Vec<bool> = left.iter().map(is_free).collect();
        let none = !free.contains(&true);
        let mut first = none;
        let mut free = free.into_iter();
        let (next, rest): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|_| free.next().unwrap_or(false) || std::mem::take(&mut first));
        placed.extend(next.iter().cloned());
        ordered.extend(next);
        left = rest;
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_before_their_children() {
        let name = |name: &str| TableName::bare(name);
        let tables = ["a", "b", "c", "d"].map(name).to_vec();
        let refers = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(c, p)| (name(c), name(p))).collect();
            let ordered = parents_first(tables.clone(), &pairs);
            ordered.iter().map(|t| t.to_string()).collect::<String>()
        };
        assert_eq!(refers(&[]), "abcd");
        assert_eq!(refers(&[("a", "c"), ("c", "d"), ("b", "b")]), "bdca");
        assert_eq!(refers(&[("a", "elsewhere")]), "abcd");
        // A circle, and one that waits for it.
        assert_eq!(refers(&[("a", "b"), ("b", "a"), ("c", "a")]), "dabc");
    }
}
