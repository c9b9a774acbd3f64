//! The port to a database's tables, their keys and their rows, for replicas and for clients that
//! list rows.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::fault::Fault;
use crate::name::{Name, TableName};
use crate::value::{Row, Value};

/// A table whose rows are identified by their primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedTable {
    /// The canonical name of the table: without a schema if the search path finds it.
    pub name: TableName,
    /// The columns of the primary key, in order; empty without a primary key, or for a view.
    pub key: Box<[Name]>,
    /// All columns, in the table's order.
    pub columns: Box<[Name]>,
    /// The generated columns, which cannot be written.
    pub generated: Box<[Name]>,
    /// True if values of key columns are stored unchanged: no trigger changes them, and their types
    /// neither round nor truncate them.
    pub keeps_key: bool,
}

/// The only row that a write may change, by its primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRow {
    /// The name of the table, with its schema if it has one.
    pub table: TableName,
    /// The columns of the primary key.
    pub columns: Arc<[Name]>,
    /// The values of the key; `None` for a value from a sequence.
    pub values: Box<[Option<Value>]>,
}

/// A range of rows in the order of keys: after one key, up to and including another. `None` is
/// unlimited.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyRange<'a> {
    /// The last key before the range.
    pub after: Option<&'a [Value]>,
    /// The last key of the range.
    pub to: Option<&'a [Value]>,
}

/// A page of a table's rows.
#[derive(Clone, Copy, Debug)]
pub struct RowPage<'a> {
    /// The table.
    pub table: &'a TableName,
    /// The columns that are read.
    pub columns: &'a [Name],
    /// The columns that order the rows; without any the order is the database's.
    pub order: &'a [Name],
    /// True if the rows with the largest values come first.
    pub is_descending: bool,
    /// The values of [`RowPage::order`] of the last row before the page.
    pub after: Option<&'a [Value]>,
    /// The values of [`RowPage::order`] that no row of the page is past.
    pub to: Option<&'a [Value]>,
    /// Conditions that all hold for each row.
    pub filters: &'a [RowFilter],
    /// True if the values of the page's limits and filters are texts as a URL spells them
    /// ([`crate::Shape::spelled`]).
    pub is_spelled: bool,
    /// The most rows.
    pub rows: usize,
    /// The number of bytes of values after which no more rows are read.
    pub bytes: usize,
    /// The time after which the database stops the query; `None` if it may take any time.
    pub time: Option<Duration>,
}

impl<'a> RowPage<'a> {
    /// Returns the first page of these columns, of any number of bytes.
    pub fn of(table: &'a TableName, columns: &'a [Name], order: &'a [Name], rows: usize) -> Self {
        Self {
            table,
            columns,
            order,
            is_descending: false,
            after: None,
            to: None,
            filters: &[],
            is_spelled: false,
            rows,
            bytes: usize::MAX,
            time: None,
        }
    }
}

/// A condition on one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFilter {
    /// The column.
    pub column: Name,
    /// The comparison.
    pub test: RowTest,
    /// The value that the column is compared with.
    pub value: Value,
}

/// The comparison of a column with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowTest {
    /// The column has the value.
    Equal,
    /// The column's value is smaller.
    Less,
    /// The column's value is smaller, or the same.
    AtMost,
    /// The column's value is larger.
    Greater,
    /// The column's value is larger, or the same.
    AtLeast,
    /// The column is NULL, whatever the value.
    Null,
    /// The column is not NULL, whatever the value.
    NotNull,
}

impl RowTest {
    /// Returns the comparison in SQL; `None` for a test without a value.
    pub fn sign(self) -> Option<&'static str> {
        match self {
            Self::Equal => Some("="),
            Self::Less => Some("<"),
            Self::AtMost => Some("<="),
            Self::Greater => Some(">"),
            Self::AtLeast => Some(">="),
            Self::Null | Self::NotNull => None,
        }
    }
}

/// The number and the checksum of the rows of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSum {
    /// The number of rows.
    pub rows: u64,
    /// The sum of the rows' checksums.
    pub sum: Box<str>,
}

/// A database that computes checksums of rows, so that they can be compared without being read.
#[async_trait]
pub trait RowSums: Send + Sync {
    /// Returns the name of the checksums' form. Different rows have different sums in the same
    /// form. Equal rows may have different sums (for example in columns of other types); then the
    /// rows themselves are compared.
    fn form(&self) -> &'static str;

    /// Returns the key of the last of so many rows of a range; `None` if it has fewer. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn end_of(
        &self,
        table: &KeyedTable,
        range: KeyRange<'_>,
        rows: usize,
    ) -> Result<Option<Row>, Fault>;

    /// Returns the checksum of some columns of the rows of a range. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
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
    /// Returns true if tables are in schemas.
    fn has_schemas(&self) -> bool;

    /// Returns the canonical names of all ordinary tables. A table comes after those that it refers
    /// to, as far as possible. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn tables(&self) -> Result<Vec<TableName>, Fault>;

    /// Returns the description of a table; `None` if it does not exist. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn table(&self, name: &TableName) -> Result<Option<KeyedTable>, Fault>;

    /// Returns the rows of a page. Fewer rows than asked for mean that there are no more, unless
    /// the page's bytes were reached. Cancel safe.
    ///
    /// # Errors
    /// The error of the database. If it cannot read a value of the page, another attempt fails too.
    async fn rows(&self, page: &RowPage<'_>) -> Result<Vec<Row>, Fault>;

    /// Returns the keys of at most `most` rows after a key, in the database's own order of keys.
    /// `after` is the last key returned before. Cancel safe.
    ///
    /// # Errors
    /// As [`Inventory::rows`].
    async fn keys(
        &self,
        table: &KeyedTable,
        after: Option<&[Value]>,
        most: usize,
    ) -> Result<Vec<Row>, Fault> {
        let page = RowPage {
            after,
            ..RowPage::of(&table.name, &table.key, &table.key, most)
        };
        self.rows(&page).await
    }

    /// Returns the database's checksums; `None` if it has none.
    fn sums(&self) -> Option<&dyn RowSums> {
        None
    }

    /// Waits until all transactions that are running at the call have ended, so that their rows can
    /// be read. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn settled(&self) -> Result<(), Fault>;
}

/// Sorts tables after those that they refer to. `references` has pairs of a table and one that it
/// refers to. In a circle of references one table comes first nevertheless.
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
