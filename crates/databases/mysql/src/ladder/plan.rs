//! A shape joined with its table's description.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use mysql_async::Value as Cell;
use windrow_core::apart::Apart;
use windrow_core::{
    Fault, FaultClass, Key, Name, OnConflict, Op, Returning, RowWrite, Shape, Value,
};
use windrow_database::demand;
use windrow_database::named_key::UniqueKeys as _;
use windrow_database::plan::Fence;

use crate::catalog::create;
use crate::catalog::table::Table;
use crate::values::column::{Column, ColumnDefault, Kind};
use crate::values::encode;
use crate::values::key;
use crate::values::key::{Canon, Found};

/// A shape, ready to be executed on one version of its table.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) shape: Arc<Shape>,
    pub(crate) table: Arc<Table>,
    pub(crate) action: Action,
    /// Places in the table of the shape's columns.
    pub(crate) columns: Box<[usize]>,
    /// Places in the table of the key's columns; for inserts those that make a conflict.
    pub(crate) key: Box<[usize]>,
    /// Places in the table of the row's values: the columns, and behind them the key where a row
    /// is found by it.
    pub(crate) row: Box<[usize]>,
    /// Places in the row of the key's values, where all are given.
    pub(crate) finds: Option<Box<[usize]>>,
    pub(crate) results: Option<Results>,
    /// Why no write of the shape can succeed.
    pub(crate) trouble: Option<Fault>,
    /// Its writes may become one statement.
    pub(crate) may_set: bool,
    /// Columns that inserts of several rows fill with the moment, a different one in each row: a
    /// unique key looks at it.
    pub(crate) moments: Box<[usize]>,
    /// An upsert whose row meets none by its key, for a part of the key is computed when the row is
    /// written. In a statement for many, rows must not meet each other either.
    pub(crate) is_new: bool,
    /// Why its writes share no transaction with others.
    pub(crate) apart: Option<Apart>,
    pub(crate) fence: Fence,
    /// True if columns that Windrow made refuse values that they would not keep as they are.
    judges: bool,
    /// Places in the row of the unique keys that are wholly given, each with a seed that tells it
    /// from all others.
    keys: Vec<(u64, Box<[usize]>)>,
}

/// What is done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Insert,
    /// An insert that leaves a row with the key as it is.
    Ignore,
    /// An insert that changes the row that it meets by its key. The statement fails where it meets
    /// one by another key.
    Upsert,
    Update,
    Delete,
    Get,
}

impl Action {
    /// What its triggers fire at, and what they may fire at too.
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

/// The columns that come back.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) names: Arc<[Name]>,
    pub(crate) places: Box<[usize]>,
    pub(crate) kinds: Box<[Kind]>,
}

/// One write as it goes to the server.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) row: Box<[Cell]>,
    /// The row that it is about, by its key, or by the first unique key that is given.
    pub(crate) canon: Option<Canon>,
    /// A key value is one that no row has.
    pub(crate) nothing: bool,
    /// It may travel in a statement for many.
    pub(crate) sets: bool,
    /// A key could not be told.
    pub(crate) unknown: bool,
}

impl Compiled {
    /// Joins a shape with its table. `judges`: columns that Windrow made refuse values that they
    /// would not keep as they are.
    pub(crate) fn new(shape: &Arc<Shape>, table: &Arc<Table>, judges: bool) -> Self {
        let needs_key = shape.has_key_values() || shape.on_conflict != OnConflict::Error;
        let key_names = if needs_key {
            table.key_names(&shape.key)
        } else {
            Some(Vec::new())
        };
        let mut trouble = senseless(shape, key_names.as_deref(), table);
        let key_names = key_names.unwrap_or_default();
        let mut places = |names: &[Name]| -> Box<[usize]> {
            let place = |name: &Name| {
                let place = table.place_of(name);
                if place.is_none() {
                    trouble.get_or_insert_with(|| no_column(table, name));
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

    /// The same, with its rows found by another key.
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

    /// Places in the row of the unique keys that are wholly given.
    pub(crate) fn given_keys(&self) -> impl Iterator<Item = &[usize]> {
        self.keys.iter().map(|(_, places)| &**places)
    }

    /// The same, with its rows found by a key that is given at these places of the row.
    pub(crate) fn by_given_key(&self, places: &[usize]) -> Self {
        let key = places
            .iter()
            .filter_map(|place| self.row.get(*place).copied());
        Self {
            finds: Some(places.into()),
            ..self.by_other_key(key.collect())
        }
    }

    /// The columns of a row's values.
    pub(crate) fn row_columns(&self) -> impl Iterator<Item = &Column> {
        let columns = &self.table.columns;
        self.row.iter().filter_map(|place| columns.get(*place))
    }

    /// Turns a write's values into what is sent, and adds the hashes of the rows that it touches.
    ///
    /// # Errors
    /// A value cannot be read, or there are too many or too few.
    pub(crate) fn encode(&self, write: &RowWrite, hashes: &mut Vec<u64>) -> Result<Encoded, Fault> {
        if write.row.len() != self.row.len() {
            return Err(Fault::invalid(format!(
                "a request for a row of {} has {} values for {} columns",
                self.table.name,
                write.row.len(),
                self.row.len()
            )));
        }
        let mut encoded = Encoded {
            sets: self.may_set,
            ..Encoded::default()
        };
        let mut row = Vec::with_capacity(self.row.len());
        for (at, (column, value)) in self.row_columns().zip(write.row.iter()).enumerate() {
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
        // A statement of one row refuses NULL where one of many may put something else in its
        // place.
        encoded.sets &= !(value.is_null() && column.not_null && !column.auto);
        // Bytes for a text: their character set would be another one in the text of a statement.
        let odd = matches!(value, Value::Bytes(_)) && !column.kind.is_binary();
        encoded.sets &= !(odd && self.action == Action::Update);
        encode::stored(table, column, value)
    }

    fn touch(&self, encoded: &mut Encoded, hashes: &mut Vec<u64>) {
        for (seed, places) in &self.keys {
            match self.found(&encoded.row, places) {
                Found::Row(canon) => {
                    hashes.push(key::hash(*seed, &canon));
                    if self.finds.is_none() {
                        encoded.canon.get_or_insert(canon);
                    }
                }
                Found::Nothing => {}
                Found::Unknown => encoded.unknown = true,
            }
        }
        encoded.unknown |= self.keys.is_empty() && self.shape.has_key_values();
        let told = match self
            .finds
            .as_ref()
            .map(|places| self.found(&encoded.row, places))
        {
            Some(Found::Row(canon)) => {
                encoded.canon = Some(canon);
                true
            }
            Some(Found::Nothing) => true,
            Some(Found::Unknown) => false,
            None => !self.shape.has_key_values(),
        };
        // An insert that changes what it meets does so in the order of its rows, whether they are
        // told apart or not.
        let counts_itself = matches!(self.action, Action::Insert)
            || (self.action == Action::Upsert && self.results.is_none());
        encoded.sets &= told || counts_itself;
    }

    /// The row that values at these places of a row name.
    pub(crate) fn found(&self, row: &[Cell], places: &[usize]) -> Found {
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
        // Of several that delete the same rows the first one does.
        Action::Delete => table.fuses && table.names_one(key),
        // A view may be read in sets as well as a table.
        Action::Get => true,
        Action::Insert | Action::Ignore | Action::Upsert => table.fuses,
    }
}

/// Whether triggers leave the values as they are by which rows are told apart: those of unique
/// keys, and of rows that come back those that were given.
fn may_fire(action: Action, table: &Table, columns: &[usize], back: bool) -> bool {
    let (op, also) = action.fires();
    let mut set = table.set_by_triggers(op, also);
    !set.any(|place| table.is_in_unique(place) || back && columns.contains(&place))
}

/// Returns the columns of the moment that are not given, if one of them is in a unique key. A
/// trigger could compare them with the moment that it sees.
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

/// What a write may disturb besides the rows whose keys it names. Which other tables refer to this
/// one is not asked, so a delete may reach them all.
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

fn senseless(shape: &Shape, key: Option<&[Name]>, table: &Table) -> Option<Fault> {
    let name = &table.name;
    let repeated = shape.columns.iter().enumerate().find(|(place, name)| {
        let before = shape.columns.iter().take(*place);
        before
            .into_iter()
            .any(|n| n.to_lowercase() == name.to_lowercase())
    });
    if let Some((_, column)) = repeated {
        let message = format!("column {column} is named twice");
        return Some(Fault::new(FaultClass::Invalid, "42701", message));
    }
    let what = if key.is_none() {
        format!("the table {name} has no primary key: name the columns of a unique key")
    } else if matches!(&shape.key, Key::Columns(names) if names.is_empty()) {
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
        // An update may give a column twice: the key's value, which stands last, says which row it
        // is.
        let place = |column: &usize| row.iter().rposition(|place| place == column);
        let places: Option<Box<[usize]>> = unique.columns.iter().map(place).collect();
        Some((seed(table, number), places?))
    });
    keys.collect()
}

/// Tells the rows of a table and one of its keys from all others.
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

fn no_column(table: &Table, name: &Name) -> Fault {
    let message = format!("table {} has no column named {name}", table.name);
    Fault::new(FaultClass::NoColumn, "42703", message)
        .with_table(Some(&*table.name.table))
        .with_column(Some(&**name))
}
