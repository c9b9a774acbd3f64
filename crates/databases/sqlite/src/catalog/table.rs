//! The description of a table.

use windrow_core::Name;
use windrow_database::named_key::UniqueKeys;

use crate::values::column::ColumnType;

/// A table or view.
#[derive(Debug)]
pub(crate) struct Table {
    /// The name as it was created.
    pub(crate) name: Name,
    pub(crate) columns: Vec<Column>,
    /// The places of the primary key's columns, in the key's order.
    pub(crate) primary: Vec<usize>,
    /// The places of the columns of the other unique keys. No key is partial or over expressions.
    pub(crate) uniques: Vec<Vec<usize>>,
    /// The unique keys that contain the time of the write.
    pub(crate) moment_keys: Vec<MomentKey>,
    /// True for STRICT tables.
    pub(crate) strict: bool,
    /// True if columns can be added: the table is neither view nor virtual.
    pub(crate) plain: bool,
    /// True for views: SQLite does not count the rows of their triggers.
    pub(crate) view: bool,
    /// True if Windrow created the table: columns are added, and values that a column does not keep
    /// exactly are refused.
    pub(crate) made: bool,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: Name,
    pub(crate) column_type: ColumnType,
}

/// A unique key with columns whose default is the current time.
#[derive(Debug, Default)]
pub(crate) struct MomentKey {
    /// The columns whose default is the current time.
    pub(crate) moments: Vec<Name>,
    /// The other columns of the key.
    pub(crate) others: Vec<Name>,
}

impl Table {
    /// Returns a column and its place. Names that differ only in the case of ASCII letters are
    /// equal in SQLite.
    pub(crate) fn column(&self, name: &str) -> Option<(usize, &Column)> {
        let mut columns = self.columns.iter().enumerate();
        columns.find(|(_, c)| c.name.eq_ignore_ascii_case(name))
    }

    /// Returns the names of the primary key's columns, in the key's order.
    pub(crate) fn primary_names(&self) -> impl Iterator<Item = &Name> {
        let name = |place: &usize| self.columns.get(*place).map(|c| &c.name);
        self.primary.iter().filter_map(name)
    }
}

impl UniqueKeys for Table {
    fn place(&self, name: &Name) -> Option<usize> {
        self.column(name).map(|(place, _)| place)
    }

    fn column(&self, place: usize) -> Option<&Name> {
        self.columns.get(place).map(|column| &column.name)
    }

    fn unique_keys(&self) -> Option<Vec<&[usize]>> {
        let primary = Some(&self.primary).filter(|primary| !primary.is_empty());
        let keys = primary.into_iter().chain(&self.uniques);
        self.plain.then(|| keys.map(Vec::as_slice).collect())
    }
}
