//! A shape matched with its table's description.

use std::sync::Arc;

use windrow_core::{
    Fault, Key, Name, OnConflict, Op, ParsedStatement, Returning, Shape, Value, Write,
};
use windrow_database::demand;
use windrow_database::named_key::UniqueKeys as _;
use windrow_proof::{Level, Trusted};

use crate::catalog::column::{ArrayForm, Column, Kind};
use crate::catalog::create;
use crate::catalog::table::Table;
use crate::statement::clock_use::ClockUse;
use crate::statement::level::{self, Sharing};
use crate::statement::of_shape;
use crate::statement::set::{Fused, SetBuilder, SetParameter};
use crate::touch::{Touch, seed};
use crate::values::fit::{Fit, fit};
use crate::values::key;
use crate::values::key::Found;

/// The part of a compiled statement that only row writes need.
#[derive(Debug)]
pub(crate) struct RowStatement {
    pub(crate) shape: Arc<Shape>,
    /// Places in the table's columns of the row's values: the shape's columns, then the key's.
    places: Box<[usize]>,
    pub(crate) result_names: Arc<[Name]>,
    pub(crate) result_kinds: Box<[Kind]>,
    pub(crate) trouble: Option<Trouble>,
    /// Positions in the row of the unique keys whose columns are all given.
    keys: Vec<(u64, Box<[usize]>)>,
    /// True if columns that Windrow created refuse values that they would not keep unchanged.
    judges: bool,
}

/// The reason why no write of a shape can succeed, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server will not parse the statement: a column is missing, or may not be written.
    Unparsable,
    /// Every write will fail: a required value is missing, or no key fits ON CONFLICT.
    Doomed,
    /// No statement can be built for the shape.
    Senseless(Fault),
}

/// Matches a shape with its table. Returns also the parsed statement, and what its writes share.
/// `judges`: columns that Windrow created refuse values that they would not keep unchanged.
pub(crate) fn row_statement(
    shape: &Arc<Shape>,
    (table, judges): (&Table, bool),
    trusted: &Trusted,
) -> (RowStatement, ParsedStatement, Sharing) {
    let plain = match table.primary() {
        None => shape.without_primary_key().map(Arc::new),
        Some(_) => None,
    };
    let shape = plain.as_ref().unwrap_or(shape);
    let key_names = key_names(shape, table);
    let names = key_names.clone().unwrap_or_default();
    let parsed = of_shape::of_shape(shape, &names, table);
    let row_statement = RowStatement::of(shape, key_names.as_deref(), (table, judges));
    let level = level::of_statement(&parsed, table, trusted);
    let clock = clock_use(&parsed, table, trusted);
    let (fused, telling) = match level {
        Level::Fused => row_statement.sets(table, &parsed, &clock),
        Level::Grouped(_) | Level::Apart(_) => (None, None),
    };
    let sharing = Sharing {
        is_proven: level == Level::Fused,
        apart: match level {
            Level::Apart(apart) => Some(apart),
            Level::Fused | Level::Grouped(_) => None,
        },
        moment: clock.moment,
        fused,
        telling,
    };
    (row_statement, parsed, sharing)
}

/// Finds where the writes of a statement read the transaction's clock.
fn clock_use(parsed: &ParsedStatement, table: &Table, trusted: &Trusted) -> ClockUse {
    if table.dialect.plain_catalog || parsed.op == Op::Get {
        return ClockUse::default();
    }
    let clocked = level::clocked(parsed, table, trusted);
    ClockUse::of(parsed, table, &clocked)
}

impl RowStatement {
    /// Matches a shape with its table. `key`: the names of its key's columns; `None` if it needs a
    /// key and there is none.
    fn of(shape: &Arc<Shape>, key: Option<&[Name]>, (table, judges): (&Table, bool)) -> Self {
        let names = key.unwrap_or_default();
        let row_names = row_names(shape, names);
        let places: Option<Box<[usize]>> = row_names.iter().map(|n| table.place_of(n)).collect();
        let results = of_shape::result_names(&shape.returning, table);
        let result_places: Option<Vec<usize>> = results.iter().map(|n| table.place_of(n)).collect();
        let complete = places.is_some() && result_places.is_some();
        let places = places.unwrap_or_default();
        let trouble = senseless(shape, key.is_none(), table).or_else(|| {
            if complete {
                trouble(shape, table, names)
            } else {
                Some(Trouble::Unparsable)
            }
        });
        Self {
            shape: shape.clone(),
            result_kinds: kinds(table, &result_places.unwrap_or_default()),
            result_names: results.into(),
            keys: given_keys(table, &places),
            places,
            trouble,
            judges,
        }
    }

    fn sets(
        &self,
        table: &Table,
        parsed: &ParsedStatement,
        clock: &ClockUse,
    ) -> (Option<Fused>, Option<Fused>) {
        let parameters: Option<Vec<SetParameter>> = self.columns(table).map(parameter).collect();
        let Some(parameters) = parameters.filter(|_| table.fuses && self.trouble.is_none()) else {
            return (None, None);
        };
        let builder = SetBuilder {
            parsed,
            facts: table,
            clock,
            parameters: &parameters,
            is_keyed: is_keyed(parsed, table),
            taken: None,
            generates_keys: true,
            width: u16::try_from(self.result_names.len()).unwrap_or(u16::MAX),
        };
        let fused = builder.fused();
        let telling = fused.as_ref().and_then(|_| builder.telling());
        (fused, telling)
    }

    /// Returns the columns of the row's values, in their order.
    pub(crate) fn columns<'t>(
        &'t self,
        table: &'t Table,
    ) -> impl Iterator<Item = &'t Column> + Clone {
        self.places
            .iter()
            .filter_map(|place| table.columns.get(*place))
    }

    /// Returns the place of the first value that is spelled as in a URL's path.
    pub(crate) fn spelled_from(&self) -> usize {
        match self.shape.is_spelled() {
            true => self.shape.columns.len(),
            false => usize::MAX,
        }
    }

    /// Returns the number of values that a row must have.
    pub(crate) fn width(&self) -> usize {
        self.places.len()
    }

    /// Returns the worst fit among the values of a write, with its column.
    pub(crate) fn fit<'t>(&'t self, table: &'t Table, write: &Write) -> (Fit, Option<&'t Column>) {
        let keyed_from = self.shape.columns.len();
        let mut worst = (Fit::Sure, None);
        for (place, (column, value)) in self.columns(table).zip(write.row().iter()).enumerate() {
            // A key value of NULL finds no row; that is no error.
            let strict = !table.has_hooks && place < keyed_from;
            let fit = fit(column, value, strict);
            if fit > worst.0 {
                worst = (fit, Some(column));
            }
        }
        worst
    }

    /// Checks the values of a write to a table that Windrow created.
    ///
    /// # Errors
    /// A column does not keep its value unchanged.
    pub(crate) fn judge(&self, table: &Table, write: &Write) -> Result<(), Fault> {
        if !self.judges || !table.ours {
            return Ok(());
        }
        let stored = self.columns(table).zip(write.row().iter());
        for (column, value) in stored.take(self.shape.columns.len()) {
            if create::judged(table, column).is_some_and(|kind| !kind.takes_value(value)) {
                let type_name = column.type_name.as_str();
                return Err(demand::misfit(&table.name, &column.name, type_name, value));
            }
        }
        Ok(())
    }

    /// Adds the rows that a write touches.
    pub(crate) fn touch(
        &self,
        table: &Table,
        write: &Write,
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) -> Touch {
        let mut touch = Touch::default();
        for (seed, places) in &self.keys {
            match self.row_key(table, *seed, places, write.row(), scratch) {
                Found::Row(key) => {
                    touch.order.get_or_insert(key);
                    hashes.push(key.hash);
                }
                Found::Nothing => {}
                Found::Unknown => touch.unknown = true,
            }
        }
        touch.unknown |= self.keys.is_empty() && self.shape.has_key_values();
        touch
    }

    /// Adds the rows that a write of the shape touches, from the table's description alone.
    pub(crate) fn touches(
        shape: &Shape,
        table: &Table,
        row: &[Value],
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) {
        let key = key_names(shape, table).unwrap_or_default();
        let value_of = |column: &Column| {
            // An update may name a column twice: the key's value, which comes last, identifies the
            // row.
            let behind = shape.has_key_values().then(|| {
                let place = key.iter().position(|name| *name == column.name)?;
                row.get(shape.columns.len() + place)
            });
            let given = || {
                let place = shape.columns.iter().position(|name| *name == column.name)?;
                row.get(place)
            };
            behind.flatten().or_else(given)
        };
        for (number, unique) in table.uniques.iter().enumerate() {
            let columns = unique.columns.iter().filter_map(|p| table.columns.get(*p));
            // Two flights may get the same moment, so rows that are equal in all other columns are
            // never in two flights.
            let stamped = |column: &Column| shape.op == Op::Insert && column.is_stamped;
            let given = columns.filter_map(|column| match value_of(column) {
                None if stamped(column) => None,
                value => Some(value.map(|value| (column, value))),
            });
            let Some(parts) = given.collect::<Option<Vec<_>>>() else {
                continue;
            };
            if let Found::Row(row) = key::row_key(seed(table, number), parts, scratch) {
                hashes.push(row.hash);
            }
        }
    }

    fn row_key(
        &self,
        table: &Table,
        seed: u64,
        places: &[usize],
        row: &[Value],
        scratch: &mut Vec<u8>,
    ) -> Found {
        let parts = places.iter().filter_map(|place| {
            let column = table.columns.get(*self.places.get(*place)?)?;
            Some((column, row.get(*place)?))
        });
        key::row_key(seed, parts, scratch)
    }
}

/// Returns the key's columns, empty if the operation needs no key; `None` if it needs one and there
/// is none.
pub(crate) fn key_names(shape: &Shape, table: &Table) -> Option<Vec<Name>> {
    match needs_key(shape) {
        true => table.key_names(&shape.key),
        false => Some(Vec::new()),
    }
}

/// Returns true if the operation finds its row by a key.
fn needs_key(shape: &Shape) -> bool {
    shape.op != Op::Insert || shape.on_conflict != OnConflict::Error
}

/// Returns the parameter for the values of a column; `None` if they cannot travel in arrays.
fn parameter(column: &Column) -> Option<SetParameter> {
    Some(SetParameter {
        array: column.array_param()?,
        cast: (column.form == ArrayForm::Cast).then(|| column.type_name.as_str().into()),
        // The server compares a domain's column with values of the base type.
        is_domain: false,
        makes_keys: column.makes_keys(),
    })
}

/// Returns true if the keys of a statement are exactly those of a unique key whose equal values are
/// known to be equal.
fn is_keyed(parsed: &ParsedStatement, table: &Table) -> bool {
    let keys = parsed.keys.iter();
    let places: Option<Vec<usize>> = keys.map(|(name, _)| table.place_of(name)).collect();
    let makes_keys = |place: &usize| table.columns.get(*place).is_some_and(Column::makes_keys);
    places.is_some_and(|places| places.iter().all(makes_keys) && table.unique_of(&places).is_some())
}

fn row_names(shape: &Shape, key: &[Name]) -> Vec<Name> {
    let key = if shape.has_key_values() { key } else { &[] };
    shape.columns.iter().chain(key).cloned().collect()
}

fn kinds(table: &Table, places: &[usize]) -> Box<[Kind]> {
    let columns = places.iter().filter_map(|p| table.columns.get(*p));
    columns.map(|c| c.kind.clone()).collect()
}

fn senseless(shape: &Shape, no_key: bool, table: &Table) -> Option<Trouble> {
    let name = &table.name;
    let what = if no_key {
        format!("the table {name} has no primary key: name the columns of a unique key")
    } else if shape.op == Op::Update && shape.columns.is_empty() {
        format!("an update of {name} names no column to change")
    } else if shape.op == Op::Get && shape.returning == Returning::Nothing {
        format!("a read of {name} names no column to give back")
    } else if needs_key(shape) && matches!(&shape.key, Key::Columns(names) if names.is_empty()) {
        format!("the key of a row of {name} has no columns")
    } else if let Some(system) = system_column(shape, table) {
        format!("the column {system} of {name} is the database's own and takes no part in writes")
    } else {
        return table.check_named_key(shape).err().map(Trouble::Senseless);
    };
    Some(Trouble::Senseless(Fault::invalid(what)))
}

/// Returns a column of the shape that every table has but no description lists
/// (<https://www.postgresql.org/docs/current/ddl-system-columns.html>), or a hidden one that the
/// database has added to this table.
fn system_column<'a>(shape: &'a Shape, table: &Table) -> Option<&'a Name> {
    const SYSTEM: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];
    let returned = match &shape.returning {
        Returning::Columns(names) => &**names,
        Returning::Nothing | Returning::All => &[],
    };
    let key = match &shape.key {
        Key::Columns(names) => &**names,
        Key::Primary => &[],
    };
    let mut all = shape.columns.iter().chain(returned).chain(key);
    all.find(|name| {
        let own = SYSTEM.contains(&&***name)
            || table.hidden.contains(name)
            || table.dialect.plain_catalog && name.starts_with("crdb_internal_");
        own && table.place_of(name).is_none()
    })
}

fn trouble(shape: &Shape, table: &Table, key: &[Name]) -> Option<Trouble> {
    let repeated = shape
        .columns
        .iter()
        .enumerate()
        .any(|(place, name)| shape.columns.iter().take(place).any(|n| n == name));
    let may_not = |name: &Name| {
        let column = table.place_of(name).and_then(|p| table.columns.get(p));
        column.is_some_and(|c| c.always_generated)
    };
    if repeated || shape.columns.iter().any(may_not) {
        return Some(Trouble::Unparsable);
    }
    if shape.op != Op::Insert || table.has_hooks {
        return None;
    }
    let lacks = |c: &Column| c.not_null && !c.has_default && !shape.columns.contains(&c.name);
    let no_arbiter = shape.on_conflict != OnConflict::Error && !table.hidden_unique && {
        let places: Option<Vec<usize>> = key.iter().map(|n| table.place_of(n)).collect();
        places.is_none_or(|places| table.unique_of(&places).is_none())
    };
    (no_arbiter || table.columns.iter().any(lacks)).then_some(Trouble::Doomed)
}

/// Returns the unique keys whose columns are all given, as places in the row, each with a seed that
/// distinguishes it from all others.
fn given_keys(table: &Table, row: &[usize]) -> Vec<(u64, Box<[usize]>)> {
    let mut keys = Vec::new();
    for (number, unique) in table.uniques.iter().enumerate() {
        let places: Option<Box<[usize]>> = unique
            .columns
            .iter()
            // An update may name a column twice: the key's value, which comes last, identifies the
            // row.
            .map(|column| row.iter().rposition(|place| place == column))
            .collect();
        if let Some(places) = places {
            keys.push((seed(table, number), places));
        }
    }
    keys
}
