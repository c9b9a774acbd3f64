//! What the catalog says of a table.

use std::sync::Arc;

use windrow_core::{Apart, Key, Name, TableName};
use windrow_database::named_key::UniqueKeys;
use windrow_proof::{Action, Catalog, Clocked, Level, Relied, Trusted};

use super::column::Column;
use crate::dialect::Dialect;

/// A table, as it was when it was read.
pub(crate) type Table = windrow_database::described::Table<Facts>;

/// In place of the version of a table that is not described: nothing is prepared or looked at for
/// it.
pub(crate) const NOT_DESCRIBED: u64 = u64::MAX;

/// Which rows of the catalog describe a table and all that its proof relies on, and the
/// transactions that wrote them. Any change of the table's columns, defaults, triggers, indexes,
/// rules, row security or partitions changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Print {
    /// The table, and its partitions.
    pub(crate) oids: Box<[u32]>,
    /// What is said of the table, or of it and its partitions with all their columns.
    pub(crate) table: Box<str>,
    /// What is said of its triggers, if it has any.
    pub(crate) triggers: Option<Box<str>>,
    /// What is said of its columns.
    pub(crate) columns: Box<str>,
    /// The transactions that wrote which tables inherit from it.
    pub(crate) heirs: Box<str>,
    /// The transaction that wrote its row, those that wrote its checks, and what stands in its
    /// row.
    pub(crate) written: Box<str>,
    /// Its file: TRUNCATE gives it another one, and writes its row.
    pub(crate) file: Box<str>,
    /// It has row security, or a partition of it has.
    pub(crate) secured: bool,
    /// What else is relied on.
    pub(crate) relied: Relied,
    /// What statements call it, as SQL: another table may come to be meant by that.
    pub(crate) spelling: Box<str>,
}

/// What was read of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: TableName,
    pub(crate) dialect: &'static Dialect,
    pub(crate) columns: Vec<Column>,
    /// Columns that are the database's own, besides those that every table has.
    pub(crate) hidden: Vec<Name>,
    pub(crate) uniques: Vec<Unique>,
    /// True if all unique keys are in `uniques` and `temporal_keys`, but for those that are partial
    /// or over expressions. False for views and foreign tables.
    pub(crate) lists_keys: bool,
    /// Keys WITHOUT OVERLAPS that are checked at once, by the places of their columns. Rows that
    /// agree in all of them would overlap, so one at most matches.
    pub(crate) temporal_keys: Vec<Box<[usize]>>,
    /// What else a row must fulfil, where it can be asked of rows that are not there yet.
    pub(crate) conditions: Vec<Condition>,
    /// A unique index or exclusion constraint that is not described in `uniques`: partial,
    /// deferrable, over expressions.
    pub(crate) hidden_unique: bool,
    /// Places in `columns` of those that such an index or constraint looks at.
    pub(crate) hidden_columns: Vec<usize>,
    /// An ordinary or partitioned table without a foreign key to itself: writes may become one
    /// statement, if that is proven of them.
    pub(crate) fuses: bool,
    /// What a write may run; `None` where nobody asked, or where the database tells no such thing.
    /// SQL calls have their own, with what their statements run.
    pub(crate) proof: Option<Arc<Catalog>>,
    /// What the catalog's rows were at that moment; `None` where the database tells no such thing.
    pub(crate) print: Option<Print>,
    /// A user's trigger or rule may change or drop what is written.
    pub(crate) has_hooks: bool,
    /// It may have foreign keys to other tables, as far as is known.
    pub(crate) refers: bool,
    /// A foreign key points here: a delete may reach other tables.
    pub(crate) referenced: bool,
    /// True if Windrow made the table: columns are added, and values that a column does not keep
    /// are refused.
    pub(crate) ours: bool,
    /// Values that are given for columns GENERATED ALWAYS AS IDENTITY are kept.
    pub(crate) overrides: bool,
}

/// A unique index over plain columns, checked at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unique {
    /// Places in [`Facts::columns`], in the order of the index.
    pub(crate) columns: Box<[usize]>,
    pub(crate) primary: bool,
    /// Not checked at the end of the transaction only. Only such a key tells rows apart at every
    /// moment.
    pub(crate) immediate: bool,
}

/// A check or a foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Places in [`Facts::columns`] of the columns that it is about.
    pub(crate) columns: Box<[usize]>,
    pub(crate) test: Test,
}

/// How a [`Condition`] is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// An expression over the columns' own names.
    Check(String),
    /// A row of another table (as SQL) whose columns of these names, in the order of the
    /// condition's own, are equal.
    Reference(String, Box<[String]>),
}

/// Why writes to a table whose proof was not read are apart.
pub(crate) const NOT_ASKED: &str = "a table that was not looked into";

/// The mark of tables that Windrow made: their comment.
pub(crate) const OURS: &str = "created by windrow";

/// The comment of a column that Windrow made and that has had no value but NULL: its type is not
/// known yet.
pub(crate) const NO_VALUE_YET: &str = "created by windrow; no value yet";

impl Print {
    /// The number of the table itself.
    pub(crate) fn oid(&self) -> Option<u32> {
        self.oids.first().copied()
    }
}

impl Facts {
    /// The same for all descriptions of a table that calls of one batch may have. `version`: that
    /// of this description.
    pub(crate) fn identity(&self, version: u64) -> u64 {
        self.oid().map_or(version, u64::from)
    }

    /// The table's number, where SQL calls rely on it.
    pub(crate) fn oid(&self) -> Option<u32> {
        self.print.as_ref()?.oid()
    }

    /// A description of which nothing is known.
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

    /// The same where values are taken for columns GENERATED ALWAYS AS IDENTITY.
    pub(crate) fn overriding(mut self) -> Self {
        for column in self.columns.iter_mut().filter(|column| column.identity) {
            column.always_generated = false;
        }
        self.overrides = true;
        self
    }

    /// What writes of this kind may share.
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

    /// The place of a column.
    pub(crate) fn place_of(&self, name: &Name) -> Option<usize> {
        self.columns.iter().position(|c| c.name == *name)
    }

    /// Whether a column is a part of a unique key, as far as is known.
    pub(crate) fn is_key(&self, name: &str) -> bool {
        let place = self.columns.iter().position(|c| *c.name == *name);
        let mut uniques = self.uniques.iter();
        self.hidden_unique || uniques.any(|u| place.is_some_and(|p| u.columns.contains(&p)))
    }

    /// True if it may matter which value a column has: for a unique key, an exclusion constraint, a
    /// check or a foreign key, or by way of a column that is generated.
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

    /// The columns of the primary key, in its order.
    pub(crate) fn primary(&self) -> Option<&[usize]> {
        let primary = self.uniques.iter().find(|u| u.primary)?;
        Some(&primary.columns)
    }

    /// The names of a key's columns; `None` if the table has no primary key and none is named.
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

    /// The unique key that has exactly these columns and is checked at once.
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
