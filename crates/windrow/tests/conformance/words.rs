//! Short words for tables, writes and what they are told.

use std::sync::Arc;

use windrow_core::shape::ShapeParts;
use windrow_core::{
    Done, Fault, FaultClass, Key, Name, OnConflict, Op, Returning, Shape, TableName, Unit,
    UnitOutcome, Value, Verdict, Write,
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

/// A shape in the making; finished by giving it a row.
#[derive(Clone)]
pub(crate) struct Make(ShapeParts);

fn names(names: &[&str]) -> Box<[Name]> {
    names.iter().map(|name| Name::from(*name)).collect()
}

fn make(op: Op, table: &str, columns: &[&str]) -> Make {
    Make(ShapeParts {
        op,
        table: TableName::parse(table).unwrap(),
        columns: names(columns),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    })
}

pub(crate) fn insert(table: &str, columns: &[&str]) -> Make {
    make(Op::Insert, table, columns)
}

pub(crate) fn update(table: &str, columns: &[&str]) -> Make {
    make(Op::Update, table, columns)
}

pub(crate) fn delete(table: &str) -> Make {
    make(Op::Delete, table, &[])
}

pub(crate) fn get(table: &str) -> Make {
    let mut make = make(Op::Get, table, &[]);
    make.0.returning = Returning::All;
    make
}

impl Make {
    pub(crate) fn ignore(mut self) -> Self {
        self.0.on_conflict = OnConflict::Ignore;
        self
    }

    pub(crate) fn upsert(mut self) -> Self {
        self.0.on_conflict = OnConflict::Update;
        self
    }

    pub(crate) fn returning(mut self, columns: &[&str]) -> Self {
        self.0.returning = Returning::Columns(names(columns));
        self
    }

    pub(crate) fn shape(&self) -> Arc<Shape> {
        Arc::new(Shape::new(self.0.clone()))
    }

    pub(crate) fn row(&self, row: Vec<Value>) -> Write {
        Write::new(self.shape(), row)
    }

    pub(crate) fn unit(&self, row: Vec<Value>) -> Unit {
        Unit::one(self.row(row))
    }
}

/// A row of values of any kind.
#[macro_export]
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$(windrow_core::Value::from($value)),*] };
}

/// The final outcome.
pub(crate) fn told(verdict: Verdict) -> UnitOutcome {
    match verdict {
        Verdict::Told(outcome) => outcome,
        other => panic!("not told: {other:?}"),
    }
}

/// Why a unit failed.
pub(crate) fn fault(outcome: &UnitOutcome) -> &Fault {
    &outcome.as_ref().expect_err("the unit succeeded").fault
}

/// What kind of failure it was.
pub(crate) fn class(outcome: &UnitOutcome) -> FaultClass {
    fault(outcome).class
}

/// The one answer of a unit of one write that succeeded.
pub(crate) fn done(outcome: &UnitOutcome) -> &Done {
    let dones = outcome.as_ref().expect("the unit failed");
    assert_eq!(dones.len(), 1);
    &dones[0]
}

/// The rows that a write counts.
pub(crate) fn count(outcome: &UnitOutcome) -> u64 {
    done(outcome).rows
}

/// The rows that a write gave back.
pub(crate) fn rows(done: &Done) -> Vec<Vec<Value>> {
    let returned = done.returned.as_ref().expect("nothing came back");
    returned.rows.iter().map(|row| row.to_vec()).collect()
}
