//! Plans a shape: joins it with its table's description.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use mysql_async::Value as Cell;
use windrow_core::apart::Apart;
use windrow_core::{Fault, FaultClass, Key, Name, OnConflict, Op, Returning, Shape, Value, Write};
use windrow_database::demand;
use windrow_database::named_key::UniqueKeys as _;
use windrow_database::plan::Fence;
use windrow_database::shape_faults::{named_twice, no_column};

use crate::catalog::create;
use crate::catalog::table::Table;
use crate::values::column::{Column, ColumnDefault, Kind};
use crate::values::encode;
use crate::values::key;
use crate::values::key::{Canon, RowKey};

/// A shape joined with one version of its table.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) shape: Arc<Shape>,
    pub(crate) table: Arc<Table>,
    pub(crate) action: Action,
    /// Places in the table of the shape's columns.
    pub(crate) columns: Box<[usize]>,
    /// Places in the table of the key's columns; for inserts those of the conflict rule.
    pub(crate) key: Box<[usize]>,
    /// Places in the table of the row's values: the columns, followed by the key if it finds a row.
    pub(crate) row: Box<[usize]>,
    /// Places in the row of the key's values, if all are given.
    pub(crate) finds: Option<Box<[usize]>>,
    pub(crate) results: Option<Results>,
    /// The reason why no write of the shape can succeed.
    pub(crate) trouble: Option<Fault>,
    /// True if several writes of the shape may become one statement.
    pub(crate) may_set: bool,
    /// Columns of a unique key that inserts of several rows fill with the current time, a different
    /// one in each row.
    pub(crate) moments: Box<[usize]>,
    /// True for an upsert that finds no row by its key, because a part of the key is computed when
    /// the row is written. Rows of one statement must not find each other either.
    pub(crate) is_new: bool,
    /// The reason why writes of the shape share no transaction with others.
    pub(crate) apart: Option<Apart>,
    pub(crate) fence: Fence,
    /// True if columns that Windrow created refuse values that they would not keep exactly.
    judges: bool,
    /// Places in the row of the unique keys that are completely given, each with a seed of its own.
    keys: Vec<(u64, Box<[usize]>)>,
}

/// The operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Insert,
    /// An insert that ignores an existing row with the key.
    Ignore,
    /// An insert that changes an existing row with the key. The statement fails if it meets a row
    /// by another key.
    Upsert,
    Update,
    Delete,
    Get,
}

impl Action {
    /// Returns the operation whose triggers fire, and another one whose triggers may fire.
    pub(crate) fn fires(self) -> (Op, Option<Op>) {
        match self {
            Self::Insert | Self::Ignore => (Op::Insert, None),
            Self::Upsert => (Op::Insert, Some(Op::Update)),
            Self::Update => (Op::Update, None),
            Self::Delete => (Op::Delete, None),
            Self::Get => (Op::Get, None),
        }
    }
}

/// The returned columns.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) names: Arc<[Name]>,
    pub(crate) places: Box<[usize]>,
    pub(crate) kinds: Box<[Kind]>,
}

/// The encoded values of a write.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) row: Box<[Cell]>,
    /// The row of the write, by its key, or by the first unique key that is given.
    pub(crate) canon: Option<Canon>,
    /// True if no row can have one of the key's values.
    pub(crate) nothing: bool,
    /// True if the write may be one of several in a statement.
    pub(crate) sets: bool,
    /// True if equality of a key cannot be decided.
    pub(crate) unknown: bool,
}

impl Compiled {
    /// Joins a shape with its table. If `judges` is set, columns that Windrow created refuse values
    /// that they would not keep exactly.
    pub(crate) fn new(shape: &Arc<Shape>, table: &Arc<Table>, judges: bool) -> Self {
        let plain = shape.without_primary_key().map(Arc::new);
        let plain = plain.filter(|_| table.key_names(&Key::Primary).is_none());
        let shape = plain.as_ref().unwrap_or(shape);
        let key_names = match needs_key(shape) {
            true => table.key_names(&shape.key),
            false => Some(Vec::new()),
        };
        let mut trouble = senseless(shape, key_names.as_deref(), table);
        let key_names = key_names.unwrap_or_default();
        let mut places = |names: &[Name]| -> Box<[usize]> {
            let place = |name: &Name| {
                let place = table.place_of(name);
                if place.is_none() {
                    trouble.get_or_insert_with(|| no_column(&table.name, name));
                }
                place
            };
            names.iter().filter_map(place).collect()
        };
        let (columns, key) = (places(&shape.columns), places(&key_names));
        let names = result_names(&shape.returning, table);
        let results = names.map(|names| Results {
            places: places(&names),
            kinds: Box::default(),
            names: names.into(),
        });
        let results = results.map(|results| with_kinds(results, table));
        let behind = if shape.has_key_values() { &*key } else { &[] };
        let row: Box<[usize]> = columns.iter().chain(behind).copied().collect();
        let action = action(shape);
        let trouble = trouble.or_else(|| misplaced(shape, table, &columns, &key));
        let finds = finds(shape, &columns, &key);
        let may_set = trouble.is_none()
            && may_set(action, table, &columns, &key)
            && may_fire(action, table, &columns, results.is_some());
        let (op, also) = action.fires();
        Self {
            may_set,
            moments: moments(action, table, &columns),
            is_new: action == Action::Upsert && computes(table, &columns, &key),
            apart: table.why_apart(op, also).cloned(),
            fence: fence(action, table, &columns, &key),
            judges,
            keys: given_keys(table, &row),
            shape: shape.clone(),
            table: table.clone(),
            action,
            columns,
            key,
            row,
            finds,
            results,
            trouble,
        }
    }

    /// Returns the same shape with another key.
    pub(crate) fn by_other_key(&self, key: Box<[usize]>) -> Self {
        Self {
            shape: self.shape.clone(),
            table: self.table.clone(),
            action: self.action,
            columns: self.columns.clone(),
            key,
            row: self.row.clone(),
            finds: None,
            results: None,
            trouble: None,
            may_set: false,
            moments: Box::default(),
            is_new: false,
            apart: self.apart.clone(),
            fence: self.fence,
            judges: false,
            keys: Vec::new(),
        }
    }

    /// Returns the places in the row of the unique keys that are completely given.
    pub(crate) fn given_keys(&self) -> impl Iterator<Item = &[usize]> {
        self.keys.iter().map(|(_, places)| &**places)
    }

    /// Returns the same shape with the key that is given at these places of the row.
    pub(crate) fn by_given_key(&self, places: &[usize]) -> Self {
        let key = places
            .iter()
            .filter_map(|place| self.row.get(*place).copied());
        Self {
            finds: Some(places.into()),
            ..self.by_other_key(key.collect())
        }
    }

    /// Returns the columns of a row's values.
    pub(crate) fn row_columns(&self) -> impl Iterator<Item = &Column> {
        let columns = &self.table.columns;
        self.row.iter().filter_map(|place| columns.get(*place))
    }

    /// Encodes a write's values, and adds the hashes of the rows that it touches.
    ///
    /// # Errors
    /// A value is invalid, or there are too many or too few.
    pub(crate) fn encode(&self, write: &Write, hashes: &mut Vec<u64>) -> Result<Encoded, Fault> {
        if write.row().len() != self.row.len() {
            return Err(Fault::invalid(format!(
                "a request for a row of {} has {} values for {} columns",
                self.table.name,
                write.row().len(),
                self.row.len()
            )));
        }
        let mut encoded = Encoded {
            sets: self.may_set,
            ..Encoded::default()
        };
        let mut row = Vec::with_capacity(self.row.len());
        for (at, (column, value)) in self.row_columns().zip(write.row().iter()).enumerate() {
            row.push(self.encode_one(at, column, value, &mut encoded)?);
        }
        encoded.row = row.into();
        self.touch(&mut encoded, hashes);
        Ok(encoded)
    }

    fn encode_one(
        &self,
        at: usize,
        column: &Column,
        value: &Value,
        encoded: &mut Encoded,
    ) -> Result<Cell, Fault> {
        let table = &self.table.name;
        if at >= self.columns.len() {
            let cell = encode::key(table, column, value)?;
            encoded.nothing |= cell.is_none();
            return Ok(cell.unwrap_or(Cell::NULL));
        }
        if self.judges
            && let Some(kind) = create::judged(&self.table, column)
            && !create::keeps(kind, column, value)
        {
            let type_name = column.kind.as_str();
            return Err(demand::misfit(table, &column.name, type_name, value));
        }
        // A statement of one row refuses NULL. One of many may store another value instead.
        encoded.sets &= !(value.is_null() && column.not_null && !column.auto);
        // Bytes for a text would have another character set in the text of a statement.
        let odd = matches!(value, Value::Bytes(_)) && !column.kind.is_binary();
        encoded.sets &= !(odd && self.action == Action::Update);
        encode::stored(table, column, value)
    }

    fn touch(&self, encoded: &mut Encoded, hashes: &mut Vec<u64>) {
        for (seed, places) in &self.keys {
            match self.found(&encoded.row, places) {
                RowKey::Row(canon) => {
                    hashes.push(key::hash(*seed, &canon));
                    if self.finds.is_none() {
                        encoded.canon.get_or_insert(canon);
                    }
                }
                RowKey::NoRow => {}
                RowKey::Unknown => encoded.unknown = true,
            }
        }
        encoded.unknown |= self.keys.is_empty() && self.shape.has_key_values();
        let is_named = match self
            .finds
            .as_ref()
            .map(|places| self.found(&encoded.row, places))
        {
            Some(RowKey::Row(canon)) => {
                encoded.canon = Some(canon);
                true
            }
            Some(RowKey::NoRow) => true,
            Some(RowKey::Unknown) => false,
            None => !self.shape.has_key_values(),
        };
        // An upsert changes existing rows in the order of its own rows, also if the keys are
        // unknown.
        let counts_itself = matches!(self.action, Action::Insert)
            || (self.action == Action::Upsert && self.results.is_none());
        encoded.sets &= is_named || counts_itself;
    }

    /// Returns the row that the values at these places of a row name.
    pub(crate) fn found(&self, row: &[Cell], places: &[usize]) -> RowKey {
        key::row_key(places.iter().filter_map(|place| {
            let column = self.table.columns.get(*self.row.get(*place)?)?;
            Some((column, row.get(*place)?))
        }))
    }
}

fn action(shape: &Shape) -> Action {
    match (shape.op, shape.on_conflict) {
        (Op::Insert, OnConflict::Error) => Action::Insert,
        (Op::Insert, OnConflict::Ignore) => Action::Ignore,
        (Op::Insert, OnConflict::Update) => Action::Upsert,
        (Op::Update, _) => Action::Update,
        (Op::Delete, _) => Action::Delete,
        (Op::Get, _) => Action::Get,
    }
}

fn may_set(action: Action, table: &Table, columns: &[usize], key: &[usize]) -> bool {
    match action {
        Action::Update => {
            table.fuses && table.is_unique(key) && !columns.iter().any(|place| key.contains(place))
        }
        // If several delete the same rows, the first one does.
        Action::Delete => table.fuses && table.names_one(key),
        // Several rows of a view may be read by one statement, as of a table.
        Action::Get => true,
        Action::Insert | Action::Ignore | Action::Upsert => table.fuses,
    }
}

/// Returns true if triggers do not change the values that identify rows: those of unique keys, and
/// of returned rows those that were given.
fn may_fire(action: Action, table: &Table, columns: &[usize], back: bool) -> bool {
    let (op, also) = action.fires();
    let mut set = table.set_by_triggers(op, also);
    !set.any(|place| table.is_in_unique(place) || back && columns.contains(&place))
}

/// Returns the columns with the current time that are not given, if one of them is in a unique key.
/// None if the table has triggers, which could compare them with the current time.
fn moments(action: Action, table: &Table, columns: &[usize]) -> Box<[usize]> {
    let (op, also) = action.fires();
    if op != Op::Insert || table.fires(op, also) {
        return Box::default();
    }
    let is_moment = |place: &usize| {
        let column = table.columns.get(*place);
        let is_moment = column.is_some_and(|c| c.default == ColumnDefault::Moment);
        is_moment && !columns.contains(place)
    };
    let moments: Box<[usize]> = (0..table.columns.len()).filter(is_moment).collect();
    let in_key = |place: &usize| table.hidden_unique || table.is_in_unique(*place);
    match moments.iter().any(in_key) {
        true => moments,
        false => Box::default(),
    }
}

/// Returns true if a part of the key is not given and computed for each row.
fn computes(table: &Table, columns: &[usize], key: &[usize]) -> bool {
    let is_computed = |place: &&usize| {
        let column = table.columns.get(**place);
        column.is_some_and(|c| c.generated || c.default != ColumnDefault::Constant)
    };
    let mut missing = key.iter().filter(|place| !columns.contains(place));
    missing.any(|place| is_computed(&place))
}

/// Returns the rows that a write may touch besides those whose keys it names. The tables that refer
/// to this one are not known, so a delete may touch all tables.
fn fence(action: Action, table: &Table, columns: &[usize], key: &[usize]) -> Fence {
    let in_unique = |place: &usize| table.hidden_unique || table.is_in_unique(*place);
    let (op, also) = action.fires();
    let fired = table
        .set_by_triggers(op, also)
        .any(|place| in_unique(&place));
    let moves = columns
        .iter()
        .any(|place| !key.contains(place) && in_unique(place));
    let several = table.hidden_unique || table.uniques.len() > 1;
    match action {
        Action::Delete => Fence::All,
        _ if fired => Fence::All,
        Action::Update if columns.iter().any(in_unique) => Fence::All,
        Action::Update | Action::Upsert | Action::Ignore if moves || several => Fence::Table,
        _ => Fence::None,
    }
}

/// Returns true if the operation finds its row by a key.
fn needs_key(shape: &Shape) -> bool {
    shape.has_key_values() || shape.on_conflict != OnConflict::Error
}

fn senseless(shape: &Shape, key: Option<&[Name]>, table: &Table) -> Option<Fault> {
    let name = &table.name;
    let repeated = shape.columns.iter().enumerate().find(|(place, name)| {
        let before = shape.columns.iter().take(*place);
        before
            .into_iter()
            .any(|n| n.to_lowercase() == name.to_lowercase())
    });
    if let Some((_, column)) = repeated {
        return Some(named_twice(column));
    }
    let what = if key.is_none() {
        format!("the table {name} has no primary key: name the columns of a unique key")
    } else if needs_key(shape) && matches!(&shape.key, Key::Columns(names) if names.is_empty()) {
        format!("the key of a row of {name} has no columns")
    } else if shape.op == Op::Update && shape.columns.is_empty() {
        format!("an update of {name} names no column to change")
    } else if shape.op == Op::Get && shape.returning == Returning::Nothing {
        format!("a read of {name} names no column to give back")
    } else {
        return None;
    };
    Some(Fault::invalid(what).with_table(Some(&*name.table)))
}

fn misplaced(shape: &Shape, table: &Table, columns: &[usize], key: &[usize]) -> Option<Fault> {
    if let Err(fault) = table.check_named_key(shape) {
        return Some(fault);
    }
    if shape.op == Op::Insert && shape.on_conflict != OnConflict::Error && !table.is_unique(key) {
        let named = key.iter().filter_map(|place| table.column(*place)).cloned();
        let why = "is not exactly a unique key, as that of an insert must be";
        return Some(table.no_such_key(&table.name, &named.collect::<Vec<_>>(), why));
    }
    let moves = columns.iter().any(|place| key.contains(place)) && !table.is_unique(key);
    if shape.op == Op::Update && moves && result_names(&shape.returning, table).is_some() {
        let message =
            "an update cannot give back rows whose key it changes, unless the key is unique";
        return Some(Fault::new(FaultClass::Unsupported, "0A000", message));
    }
    None
}

fn finds(shape: &Shape, columns: &[usize], key: &[usize]) -> Option<Box<[usize]>> {
    if shape.has_key_values() {
        return Some((columns.len()..columns.len() + key.len()).collect());
    }
    if key.is_empty() {
        return None;
    }
    let place = |place: &usize| columns.iter().position(|column| column == place);
    key.iter().map(place).collect()
}

/// Unique keys whose columns are all given, as places in the row.
fn given_keys(table: &Table, row: &[usize]) -> Vec<(u64, Box<[usize]>)> {
    let numbered = table.uniques.iter().enumerate();
    let keys = numbered.filter_map(|(number, unique)| {
        // An update may give a column twice. The last value is the key's, which finds the row.
        let place = |column: &usize| row.iter().rposition(|place| place == column);
        let places: Option<Box<[usize]>> = unique.columns.iter().map(place).collect();
        Some((seed(table, number), places?))
    });
    keys.collect()
}

/// Returns a number that differs between tables and their keys.
fn seed(table: &Table, number: usize) -> u64 {
    foldhash::fast::FixedState::default().hash_one((&table.name, number))
}

fn result_names(returning: &Returning, table: &Table) -> Option<Vec<Name>> {
    match returning {
        Returning::Nothing => None,
        Returning::Columns(names) if names.is_empty() => None,
        Returning::All => Some(table.columns.iter().map(|c| c.name.clone()).collect()),
        Returning::Columns(names) => Some(names.to_vec()),
    }
}

fn with_kinds(mut results: Results, table: &Table) -> Results {
    let columns = results
        .places
        .iter()
        .filter_map(|place| table.columns.get(*place));
    results.kinds = columns.map(|column| column.kind).collect();
    results
}
