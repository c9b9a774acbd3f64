//! What the catalog says of a table.

use std::sync::Arc;

use tokio::time::Instant;
use windrow_core::{Apart, Key, Name, TableName};
use windrow_proof::{Catalog, Deed, Level, Relied, Trusted};

use super::column::Column;
use super::dialect::Dialect;

/// A table, as it was when it was read.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Changes whenever its [`Facts`] do; statements belong to one version.
    pub(super) version: u64,
    /// When it was read.
    pub(super) read_at: Instant,
    pub(super) facts: Facts,
}

/// Which rows of the catalog describe a table and all that its proof relies on, and the
/// transactions that wrote them. Any change of the table's columns, defaults, triggers, indexes,
/// rules, row security or partitions changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Print {
    /// The table, and its partitions.
    pub(super) oids: Box<[u32]>,
    /// What is said of the table, or of it and its partitions with all their columns.
    pub(super) table: Box<str>,
    /// What is said of its triggers, if it has any.
    pub(super) triggers: Option<Box<str>>,
    /// What is said of its columns.
    pub(super) columns: Box<str>,
    /// The transaction that wrote its row, those that wrote its checks, and what stands in its
    /// row.
    pub(super) written: Box<str>,
    /// Its file: TRUNCATE gives it another one, and writes its row.
    pub(super) file: Box<str>,
    /// What else is relied on.
    pub(super) relied: Relied,
    /// What statements call it, as SQL: another table may come to be meant by that.
    pub(super) spelling: Box<str>,
}

/// The description itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) name: TableName,
    pub(super) dialect: &'static Dialect,
    pub(super) columns: Vec<Column>,
    /// Columns that are the database's own, besides those that every table has.
    pub(super) hidden: Vec<Name>,
    pub(super) uniques: Vec<Unique>,
    /// What else a row must fulfil, where it can be asked of rows that are not there yet.
    pub(super) conditions: Vec<Condition>,
    /// A unique index or exclusion constraint that is not described in `uniques`: partial,
    /// deferrable, over expressions.
    pub(super) hidden_unique: bool,
    /// An ordinary or partitioned table without a foreign key to itself: writes may become one
    /// statement, if that is proven of them.
    pub(super) fuses: bool,
    /// What a write may run; `None` where nobody asked, or where the database tells no such thing.
    /// SQL calls have their own, with what their statements run.
    pub(super) proof: Option<Arc<Catalog>>,
    /// What the catalog's rows were at that moment; `None` where the database tells no such thing.
    pub(super) print: Option<Print>,
    /// A user's trigger or rule may change or drop what is written.
    pub(super) has_hooks: bool,
    /// A foreign key points here: a delete may reach other tables.
    pub(super) referenced: bool,
    /// Windrow made it, so Windrow may widen it.
    pub(super) ours: bool,
}

/// A unique index over plain columns, checked at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unique {
    /// Places in [`Facts::columns`], in the order of the index.
    pub(super) columns: Box<[usize]>,
    pub(super) primary: bool,
    /// Not checked at the end of the transaction only. Only such a key tells rows apart at every
    /// moment.
    pub(super) immediate: bool,
}

/// A check or a foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// Places in [`Facts::columns`] of the columns that it is about.
    pub(super) columns: Box<[usize]>,
    pub(super) test: Test,
}

/// How a [`Condition`] is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// An expression over the columns' own names.
    Check(String),
    /// A row of another table (as SQL) whose columns of these names, in the order of the
    /// condition's own, are equal.
    Reference(String, Box<[String]>),
}

/// Why writes to a table whose proof was not read are apart.
pub(super) const NOT_ASKED: &str = "a table that was not looked into";

/// The mark of tables that Windrow made: their comment.
pub(super) const OURS: &str = "created by windrow";

/// The comment of a column that Windrow made and that has had no value but NULL: its type is not
/// known yet.
pub(super) const NO_VALUE_YET: &str = "created by windrow; no value yet";

impl Table {
    /// The same for all descriptions of a table that calls of one batch may have.
    pub(super) fn identity(&self) -> u64 {
        self.oid().map_or(self.version, u64::from)
    }

    /// The table's number, where SQL calls rely on it.
    pub(super) fn oid(&self) -> Option<u32> {
        self.print.as_ref()?.oid()
    }
}

impl Print {
    /// The number of the table itself.
    pub(super) fn oid(&self) -> Option<u32> {
        self.oids.first().copied()
    }
}

impl std::ops::Deref for Table {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl Facts {
    /// What writes of this kind may share.
    pub(super) fn judge(&self, deed: &Deed<'_>, trusted: &Trusted) -> Level {
        match &self.proof {
            Some(proof) => proof.judge(deed, trusted),
            None => Level::Apart(Arc::new(Apart::of(NOT_ASKED))),
        }
    }

    /// The place of a column.
    pub(super) fn place_of(&self, name: &Name) -> Option<usize> {
        self.columns.iter().position(|c| c.name == *name)
    }

    /// Whether a column is a part of a unique key, as far as is known.
    pub(super) fn is_key(&self, name: &str) -> bool {
        let place = self.columns.iter().position(|c| *c.name == *name);
        let mut uniques = self.uniques.iter();
        self.hidden_unique || uniques.any(|u| place.is_some_and(|p| u.columns.contains(&p)))
    }

    /// The columns of the primary key, in its order.
    pub(super) fn primary(&self) -> Option<&[usize]> {
        let primary = self.uniques.iter().find(|u| u.primary)?;
        Some(&primary.columns)
    }

    /// The names of a key's columns; `None` if the table has no primary key and none is named.
    pub(super) fn key_names(&self, key: &Key) -> Option<Vec<Name>> {
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
    pub(super) fn unique_of(&self, columns: &[usize]) -> Option<&Unique> {
        self.uniques.iter().find(|u| {
            u.immediate
                && u.columns.len() == columns.len()
                && u.columns.iter().all(|c| columns.contains(c))
        })
    }
}
