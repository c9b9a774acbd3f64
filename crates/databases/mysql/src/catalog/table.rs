//! The description of a table.

use std::time::Duration;

use windrow_core::apart::Apart;
use windrow_core::{Key, Level, Name, Op, Standing, TableName};
use windrow_database::described;
use windrow_database::named_key::UniqueKeys;

use crate::values::column::Column;

/// The time for which a description is used before it is read again. The guard of a transaction
/// notices changes of columns at once. This limit is for other changes, such as a trigger.
const FRESH: Duration = Duration::from_secs(30);

/// The same without a guard, because the user may not select from the table.
const UNGUARDED: Duration = Duration::from_secs(1);

/// A table's description, with its version.
pub(crate) type Table = described::Table<Facts>;

/// The description of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: TableName,
    pub(crate) columns: Vec<Column>,
    pub(crate) uniques: Vec<Unique>,
    /// True for a view, whose unique keys the server does not list.
    pub(crate) is_view: bool,
    /// True if a unique index is not in `uniques`: it is over parts of columns or expressions.
    pub(crate) hidden_unique: bool,
    /// True if the table's engine can undo a statement.
    pub(crate) transactional: bool,
    /// True for an ordinary table of InnoDB without a foreign key to itself: writes may become one
    /// statement, if its triggers allow it.
    pub(crate) fuses: bool,
    /// The reason why no write or read of the table shares a transaction with others.
    pub(crate) apart: Option<Apart>,
    pub(crate) triggers: Vec<Trigger>,
    /// True if the user can see all triggers of the table.
    pub(crate) sees_triggers: bool,
    /// True if a prepared statement gives a parameter the type of an earlier value (MySQL).
    pub(crate) retypes: bool,
    /// True if Windrow created the table: columns are added, and values that a column does not keep
    /// exactly are refused.
    pub(crate) ours: bool,
    /// The table's fingerprint; `None` if the user may not select from the table.
    pub(crate) print: Option<Print>,
}

/// The fingerprint of a table, which the guard compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Print {
    /// The table's columns and definition.
    pub(crate) table: Box<str>,
    pub(crate) triggers: Box<str>,
}

/// A trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trigger {
    /// The operation that fires the trigger.
    pub(crate) op: Op,
    /// The columns that the trigger sets, if it does nothing else; or the reason why writes with it
    /// are isolated.
    pub(crate) sets: Result<Box<[usize]>, Apart>,
    /// The columns of the new row that the trigger may set; `None` for any.
    pub(crate) may_set: Option<Box<[usize]>>,
}

/// A unique index over whole columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unique {
    pub(crate) name: Box<str>,
    /// Places in [`Facts::columns`], in the order of the index.
    pub(crate) columns: Box<[usize]>,
    pub(crate) primary: bool,
}

/// The mark of tables that Windrow created: their comment.
pub(crate) const OURS: &str = "created by windrow";

/// The comment of a column that Windrow created and that has had only NULL: its type is unknown.
pub(crate) const NO_VALUE_YET: &str = "created by windrow; no value yet";

impl described::Facts for Facts {
    fn fresh_for(&self) -> Duration {
        match self.print {
            Some(_) => FRESH,
            None => UNGUARDED,
        }
    }
}

impl Facts {
    /// Returns the reason why a write with these operations shares no transaction with others.
    pub(crate) fn why_apart(&self, op: Op, also: Option<Op>) -> Option<&Apart> {
        let fired = self.fired(op, also).find_map(|t| t.sets.as_ref().err());
        self.apart.as_ref().or(fired)
    }

    /// Returns true if rows may refer to rows of other tables, by the table's definition.
    pub(crate) fn refers(&self) -> bool {
        let defined = self.print.as_ref().map(|print| &print.table);
        defined.is_none_or(|table| table.contains("FOREIGN KEY"))
    }

    /// Returns true if a default may take numbers from a sequence, which other tables may use too.
    pub(crate) fn takes_from_sequences(&self) -> bool {
        let defined = self.print.as_ref().map(|print| &print.table);
        let takes = |table: &str| table.to_ascii_lowercase().contains("nextval(");
        defined.is_none_or(|table| takes(table))
    }

    /// Returns true if the server may number rows.
    pub(crate) fn counts(&self) -> bool {
        self.columns.iter().any(|column| column.auto)
    }

    /// Returns the columns that triggers set.
    pub(crate) fn set_by_triggers(&self, op: Op, also: Option<Op>) -> impl Iterator<Item = usize> {
        let sets = self.fired(op, also).filter_map(|t| t.sets.as_ref().ok());
        sets.flatten().copied()
    }

    /// Returns true if a trigger may store another value in a column than the write gives.
    pub(crate) fn may_change(&self, op: Op, also: Option<Op>, place: usize) -> bool {
        let changes = |trigger: &Trigger| {
            let may_set = trigger.may_set.as_ref();
            may_set.is_none_or(|places| places.contains(&place))
        };
        !self.sees_triggers || self.fired(op, also).any(changes)
    }

    /// Returns true if a trigger fires at a write.
    pub(crate) fn fires(&self, op: Op, also: Option<Op>) -> bool {
        !self.sees_triggers || self.fired(op, also).next().is_some()
    }

    /// Returns true if `INSERT IGNORE` may leave out a row for another reason than its key.
    pub(crate) fn has_conditions(&self) -> bool {
        let defined = self.print.as_ref().map(|print| &print.table);
        defined.is_none_or(|table| table.contains("CHECK") || table.contains("PARTITION"))
    }

    /// Adds which inserts, updates, deletes and reads share transactions, for operators.
    pub(crate) fn standings(&self, name: &TableName, standings: &mut Vec<Standing>) {
        for op in [Op::Insert, Op::Update, Op::Delete, Op::Get] {
            let why = self.why_apart(op, None).cloned();
            let own = Apart::of("an engine, a version history or a reference to itself");
            let (level, why) = match why {
                Some(why) => (Level::Apart, Some(why)),
                None if self.fuses => (Level::Fused, None),
                None => (Level::Grouped, Some(own.by(format!("table {name}")))),
            };
            Standing::add(standings, name, op, level, why);
        }
    }

    fn fired(&self, op: Op, also: Option<Op>) -> impl Iterator<Item = &Trigger> {
        let triggers = self.triggers.iter();
        triggers.filter(move |trigger| trigger.op == op || Some(trigger.op) == also)
    }

    /// Returns the place of a column. Names of columns are not case-sensitive.
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        let mut columns = self.columns.iter();
        columns.position(|column| {
            &*column.name == name || column.name.to_lowercase() == name.to_lowercase()
        })
    }

    /// Returns the names of a key's columns; `None` if the table has no primary key.
    pub(crate) fn key_names(&self, key: &Key) -> Option<Vec<Name>> {
        if let Key::Columns(names) = key {
            return Some(names.to_vec());
        }
        let primary = self.uniques.iter().find(|unique| unique.primary)?;
        let name = |place: &usize| self.columns.get(*place).map(|column| column.name.clone());
        primary.columns.iter().map(name).collect()
    }

    /// Returns true if these columns, in any order, are a unique index.
    pub(crate) fn is_unique(&self, places: &[usize]) -> bool {
        self.uniques
            .iter()
            .any(|unique| same(&unique.columns, places))
    }

    /// Returns true if a column is part of a unique index over whole columns.
    pub(crate) fn is_in_unique(&self, place: usize) -> bool {
        let mut uniques = self.uniques.iter();
        uniques.any(|unique| unique.columns.contains(&place))
    }

    /// Returns true if these columns name one row at most.
    pub(crate) fn names_one(&self, places: &[usize]) -> bool {
        let within = |unique: &Unique| unique.columns.iter().all(|place| places.contains(place));
        self.uniques.iter().any(within)
    }

    /// Returns true if a row with values in these columns may conflict with another row by another
    /// key than this one. A column that the server numbers conflicts with none, and neither does
    /// NULL. A computed column may have any value.
    pub(crate) fn has_rival(&self, key: &[usize], given: &[usize]) -> bool {
        let may_meet = |unique: &&Unique| {
            unique.columns.iter().all(|place| {
                let column = self.columns.get(*place);
                let nothing = |c: &Column| c.auto || c.null_by_default && !c.generated;
                given.contains(place) || !column.is_some_and(nothing)
            })
        };
        let others = self
            .uniques
            .iter()
            .filter(|unique| !same(&unique.columns, key));
        self.hidden_unique || others.filter(may_meet).count() > 0
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
        let keys = self.uniques.iter().map(|unique| &*unique.columns);
        (!self.is_view).then(|| keys.collect())
    }
}

/// Returns true if both have the same columns, in any order.
pub(crate) fn same(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().all(|place| b.contains(place))
}
