//! Short words for tables, writes and what they are told.

use windrow_core::{FaultClass, UnitOutcome, WriteDone};
pub(crate) use windrow_testkit::row;
pub(crate) use windrow_testkit::writes::{
    Make, delete, fault, get, insert, returned as rows, told, update,
};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A whole number of 64 bits.
    Int,
    Text,
    Bool,
    /// A decimal number, as exact as the database has it.
    Number,
    Bytes,
    Json,
    /// A key that the database generates.
    Serial,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) of: Type,
    /// Without a value a row is refused.
    pub(crate) must: bool,
    pub(crate) unique: bool,
    /// The table whose `id` it refers to.
    pub(crate) refers: Option<&'static str>,
}

/// A table, whose key is its first column.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<Column>,
}

/// A table of these columns; the first is its key.
pub(crate) fn table(name: &'static str, columns: &[(&'static str, Type)]) -> Table {
    let column = |(name, of): &(&'static str, Type)| Column {
        name,
        of: *of,
        must: false,
        unique: false,
        refers: None,
    };
    Table {
        name,
        columns: columns.iter().map(column).collect(),
    }
}

impl Table {
    fn last(mut self, change: impl Fn(&mut Column)) -> Self {
        self.columns.last_mut().into_iter().for_each(change);
        self
    }

    /// Its last column must have a value.
    pub(crate) fn must(self) -> Self {
        self.last(|column| column.must = true)
    }

    /// Its last column is a unique key.
    pub(crate) fn unique(self) -> Self {
        self.last(|column| column.unique = true)
    }

    /// Its last column refers to another table.
    pub(crate) fn refers(self, to: &'static str) -> Self {
        self.last(|column| column.refers = Some(to))
    }
}

/// The table that most rules are about.
pub(crate) fn plain() -> Table {
    table(
        "t",
        &[("id", Type::Int), ("a", Type::Text), ("n", Type::Int)],
    )
}

/// What kind of failure it was.
pub(crate) fn class(outcome: &UnitOutcome) -> FaultClass {
    fault(outcome).class
}

/// The one answer of a unit of one write that succeeded.
pub(crate) fn done(outcome: &UnitOutcome) -> &WriteDone {
    let dones = outcome.as_ref().expect("the unit failed");
    assert_eq!(dones.len(), 1);
    &dones[0]
}

/// The rows that a write counts.
pub(crate) fn count(outcome: &UnitOutcome) -> u64 {
    done(outcome).rows
}
