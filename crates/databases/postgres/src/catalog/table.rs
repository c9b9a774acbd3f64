//! Descriptions of tables, as the catalog gives them.

use std::sync::Arc;

use windrow_core::{Apart, Key, Name, TableName};
use windrow_database::named_key::UniqueKeys;
use windrow_proof::{Action, Catalog, Clocked, Level, Relied, Trusted};

use super::column::Column;
use crate::dialect::Dialect;

/// A table's description, and when it was read.
pub(crate) type Table = windrow_database::described::Table<Facts>;

/// The version of a table that is not described: nothing is prepared or checked for it.
pub(crate) const NOT_DESCRIBED: u64 = u64::MAX;

/// A fingerprint of a table: the rows of the catalog that describe the table and all that its proof
/// relies on, and the transactions that wrote them. Any change of the table's columns, defaults,
/// triggers, indexes, rules, row security or partitions changes the fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Print {
    /// The table, and its partitions.
    pub(crate) oids: Box<[u32]>,
    /// The catalog's state of the table, or of the table and its partitions with all their columns.
    pub(crate) table: Box<str>,
    /// The catalog's state of the table's triggers, if the table has any.
    pub(crate) triggers: Option<Box<str>>,
    /// The catalog's state of the table's columns.
    pub(crate) columns: Box<str>,
    /// The transactions that recorded which tables inherit from this table.
    pub(crate) heirs: Box<str>,
    /// The transaction that wrote the table's row, those that wrote the table's checks, and the
    /// row's content.
    pub(crate) written: Box<str>,
    /// The table's file. TRUNCATE gives the table another file, and writes the table's row.
    pub(crate) file: Box<str>,
    /// True if the table or one of its partitions has row security.
    pub(crate) secured: bool,
    /// Other objects that the proof relies on.
    pub(crate) relied: Relied,
    /// The table's name in statements, as SQL. Another table may come to have this name.
    pub(crate) spelling: Box<str>,
}

/// The description of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: TableName,
    pub(crate) dialect: &'static Dialect,
    pub(crate) columns: Vec<Column>,
    /// Hidden columns of the database itself, apart from those that every table has.
    pub(crate) hidden: Vec<Name>,
    pub(crate) uniques: Vec<Unique>,
    /// True if `uniques` and `temporal_keys` hold all unique keys, except for those that are
    /// partial or over expressions. False for views and foreign tables.
    pub(crate) lists_keys: bool,
    /// Keys WITHOUT OVERLAPS that are checked at once, by the places of their columns. Rows that
    /// agree in all of them would overlap, so one at most matches.
    pub(crate) temporal_keys: Vec<Box<[usize]>>,
    /// Checks and foreign keys that a row must fulfil, as far as they can be evaluated for a row
    /// that does not exist yet.
    pub(crate) conditions: Vec<Condition>,
    /// True if `conditions` lacks a check or a foreign key.
    pub(crate) has_other_conditions: bool,
    /// True for an ordinary table that is no partition.
    pub(crate) is_ordinary: bool,
    /// True if an index is partial, over expressions, for an exclusion, or not valid.
    pub(crate) has_odd_indexes: bool,
    /// Places in `columns` of the columns that indexes hold.
    pub(crate) indexed: Box<[usize]>,
    /// True if there is a unique index or exclusion constraint that is not described in `uniques`:
    /// partial, deferrable or over expressions.
    pub(crate) hidden_unique: bool,
    /// Places in `columns` of the columns that such an index or constraint depends on.
    pub(crate) hidden_columns: Vec<usize>,
    /// True for an ordinary or partitioned table without a foreign key to itself: several writes
    /// may become one statement, if the proof allows it.
    pub(crate) fuses: bool,
    /// The proof: the code that a write may run. `None` if the proof was not read, or if the
    /// database's catalog cannot give one. SQL calls have a proof of their own, which includes the
    /// code that their statements run.
    pub(crate) proof: Option<Arc<Catalog>>,
    /// The fingerprint of the catalog's rows when the description was read; `None` if the
    /// database's catalog does not record which transactions wrote it.
    pub(crate) print: Option<Print>,
    /// True if a user's trigger or rule may change or drop what is written.
    pub(crate) has_hooks: bool,
    /// True if the table may have foreign keys to other tables, as far as is known.
    pub(crate) refers: bool,
    /// True if a foreign key refers to this table: a delete may reach other tables.
    pub(crate) referenced: bool,
    /// True if Windrow created the table. Windrow then adds columns, and refuses values that a
    /// column would not keep unchanged.
    pub(crate) ours: bool,
    /// True if values that clients give for columns GENERATED ALWAYS AS IDENTITY are kept.
    pub(crate) overrides: bool,
}

/// A unique index over plain columns, checked at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unique {
    /// Places in [`Facts::columns`], in the order of the index.
    pub(crate) columns: Box<[usize]>,
    pub(crate) primary: bool,
    /// True if the key is checked at once, not only at the end of the transaction. Only such a key
    /// distinguishes rows at every moment.
    pub(crate) immediate: bool,
}

/// A check or a foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Places in [`Facts::columns`] of the columns that the condition uses.
    pub(crate) columns: Box<[usize]>,
    pub(crate) test: Test,
}

/// The test by which a [`Condition`] is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// An expression over the columns' own names.
    Check(String),
    /// A row of another table (as SQL) whose columns of these names, in the order of the
    /// condition's own, are equal.
    Reference(String, Box<[String]>, ReferredKey),
}

/// The table and columns that a foreign key refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReferredKey {
    /// The table's number in the catalog.
    pub(crate) table: u32,
    /// The numbers of the columns in that table, in the order of the condition's own.
    pub(crate) columns: Box<[i16]>,
    /// True if the key is checked at COMMIT.
    pub(crate) is_deferred: bool,
}

/// The reason why writes to a table whose proof was not read are isolated.
pub(crate) const NOT_ASKED: &str = "a table that was not looked into";

/// The comment that marks tables created by Windrow.
pub(crate) const OURS: &str = "created by windrow";

/// The comment of a column that Windrow created and that has only had NULL: its type is not known
/// yet.
pub(crate) const NO_VALUE_YET: &str = "created by windrow; no value yet";

impl Print {
    /// Returns the number of the table itself.
    pub(crate) fn oid(&self) -> Option<u32> {
        self.oids.first().copied()
    }
}

impl Facts {
    /// Returns a number that is the same for all descriptions of a table that calls of one batch
    /// may have. `version`: the version of this description.
    pub(crate) fn identity(&self, version: u64) -> u64 {
        self.oid().map_or(version, u64::from)
    }

    /// Returns the table's number, if SQL calls rely on it.
    pub(crate) fn oid(&self) -> Option<u32> {
        self.print.as_ref()?.oid()
    }

    /// Returns the description of a table of which nothing is known.
    pub(crate) fn unread(name: &TableName, dialect: &'static Dialect) -> Self {
        Self {
            name: name.clone(),
            dialect,
            columns: Vec::new(),
            hidden: Vec::new(),
            uniques: Vec::new(),
            lists_keys: false,
            temporal_keys: Vec::new(),
            conditions: Vec::new(),
            has_other_conditions: true,
            is_ordinary: false,
            has_odd_indexes: true,
            indexed: Box::default(),
            hidden_unique: false,
            hidden_columns: Vec::new(),
            fuses: false,
            has_hooks: false,
            refers: true,
            referenced: false,
            ours: false,
            overrides: false,
            proof: None,
            print: None,
        }
    }

    /// Returns the same description, in which clients may give values for columns GENERATED ALWAYS
    /// AS IDENTITY.
    pub(crate) fn overriding(mut self) -> Self {
        for column in self.columns.iter_mut().filter(|column| column.identity) {
            column.always_generated = false;
        }
        self.overrides = true;
        self
    }

    /// Returns what writes of this kind may share with other writes.
    pub(crate) fn judge(&self, action: &Action<'_>, trusted: &Trusted) -> Level {
        match &self.proof {
            Some(proof) => proof.judge(action, trusted),
            None => Level::Apart(Arc::new(Apart::of(NOT_ASKED))),
        }
    }

    /// Finds what a write of this kind runs besides itself that reads the transaction's clock.
    pub(crate) fn clocked(&self, action: &Action<'_>, trusted: &Trusted) -> Clocked {
        let proof = self.proof.as_ref();
        proof.map_or_else(Clocked::default, |proof| proof.clocked(action, trusted))
    }

    /// Returns the place of a column.
    pub(crate) fn place_of(&self, name: &Name) -> Option<usize> {
        self.columns.iter().position(|c| c.name == *name)
    }

    /// Returns true if a column is part of a unique key, as far as is known.
    pub(crate) fn is_key(&self, name: &str) -> bool {
        let place = self.columns.iter().position(|c| *c.name == *name);
        let mut uniques = self.uniques.iter();
        self.hidden_unique || uniques.any(|u| place.is_some_and(|p| u.columns.contains(&p)))
    }

    /// Returns true if the column's value may matter to a unique key, an exclusion constraint, a
    /// check or a foreign key, directly or through a generated column.
    pub(crate) fn looks_at(&self, name: &str) -> bool {
        let Some(place) = self.columns.iter().position(|c| *c.name == *name) else {
            return true;
        };
        let mut columns = self.columns.iter().enumerate();
        self.looks_at_place(place)
            || columns.any(|(other, column)| {
                column.always_generated && !column.identity && self.looks_at_place(other)
            })
    }

    fn looks_at_place(&self, place: usize) -> bool {
        let mut conditions = self.conditions.iter();
        self.hidden_columns.contains(&place)
            || self.uniques.iter().any(|u| u.columns.contains(&place))
            || conditions.any(|condition| condition.columns.contains(&place))
    }

    /// Returns the columns of the primary key, in its order.
    pub(crate) fn primary(&self) -> Option<&[usize]> {
        let primary = self.uniques.iter().find(|u| u.primary)?;
        Some(&primary.columns)
    }

    /// Returns the names of a key's columns; `None` if the table has no primary key and none is
    /// named.
    pub(crate) fn key_names(&self, key: &Key) -> Option<Vec<Name>> {
        match key {
            Key::Columns(names) => Some(names.to_vec()),
            Key::Primary => Some(
                self.primary()?
                    .iter()
                    .filter_map(|place| self.columns.get(*place))
                    .map(|c| c.name.clone())
                    .collect(),
            ),
        }
    }

    /// Returns the unique key that has exactly these columns and is checked immediately.
    pub(crate) fn unique_of(&self, columns: &[usize]) -> Option<&Unique> {
        self.uniques.iter().find(|u| {
            u.immediate
                && u.columns.len() == columns.len()
                && u.columns.iter().all(|c| columns.contains(c))
        })
    }
}

impl UniqueKeys for Facts {
    fn place(&self, name: &Name) -> Option<usize> {
        self.place_of(name)
    }

    fn column(&self, place: usize) -> Option<&Name> {
        self.columns.get(place).map(|column| &column.name)
    }

    fn unique_keys(&self) -> Option<Vec<&[usize]>> {
        let uniques = self.uniques.iter().map(|unique| &*unique.columns);
        let keys = uniques.chain(self.temporal_keys.iter().map(|key| &**key));
        self.lists_keys.then(|| keys.collect())
    }
}
