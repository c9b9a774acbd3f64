//! The description of a table.

use windrow_core::{Key, Name, TableName};
use windrow_database::named_key::UniqueKeys;

use crate::values::column::Column;

/// A table, as it was when it was read.
pub(crate) type Table = windrow_database::described::Table<Facts>;

/// The description of a table, read from the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The name of the table, with its schema.
    pub(crate) name: TableName,
    pub(crate) columns: Vec<Column>,
    /// Places of the primary key's columns, in its order; empty if there is none.
    pub(crate) primary: Vec<usize>,
}

impl Facts {
    /// Returns a column by its name.
    pub(crate) fn column(&self, name: &Name) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == *name)
    }

    /// Returns the columns of the primary key.
    pub(crate) fn key(&self) -> impl Iterator<Item = &Column> {
        self.primary
            .iter()
            .filter_map(|place| self.columns.get(*place))
    }

    /// Returns the names by which a write finds its row, in the order of their values in the row.
    pub(crate) fn key_names(&self, key: &Key) -> Vec<Name> {
        match key {
            Key::Columns(names) => names.to_vec(),
            Key::Primary => self.key().map(|column| column.name.clone()).collect(),
        }
    }

    /// Returns true if the names are those of the primary key, in any order.
    pub(crate) fn is_primary(&self, names: &[Name]) -> bool {
        !names.is_empty()
            && names.len() == self.primary.len()
            && self.key().all(|column| names.contains(&column.name))
    }
}

impl UniqueKeys for Facts {
    fn place(&self, name: &Name) -> Option<usize> {
        self.columns.iter().position(|column| column.name == *name)
    }

    fn column(&self, place: usize) -> Option<&Name> {
        self.columns.get(place).map(|column| &column.name)
    }

    /// Returns only the primary key: CrateDB has no other unique keys.
    fn unique_keys(&self) -> Option<Vec<&[usize]>> {
        let primary = Some(&*self.primary).filter(|primary| !primary.is_empty());
        Some(primary.into_iter().collect())
    }
}
