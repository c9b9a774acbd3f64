//! Reports what the writes of rows to a table share, for operators.
//!
//! The report covers the plainest writes: an insert of the columns that have no default, and an
//! update by primary key of all columns outside of keys. Other writes share at most as much. The
//! exception is an insert that gives a value to a column whose default prevents sharing.

use std::sync::Arc;

use windrow_core::shape::ShapeParts;
use windrow_core::{
    Apart, Key, Level, Name, OnConflict, Op, Returning, Shape, Standing, TableName,
};
use windrow_proof::Trusted;

use crate::calls::preview::certainty;
use crate::catalog::column::Column;
use crate::catalog::table::{Facts, Table};
use crate::compiled::{Compiled, Numbers};
use crate::statement::{level, of_shape};

/// Adds what is known of a table. `name`: as clients have named it.
pub(crate) fn add(
    name: &TableName,
    table: &Arc<Table>,
    trusted: &Trusted,
    standings: &mut Vec<Standing>,
) {
    for op in [Op::Insert, Op::Update, Op::Delete, Op::Get] {
        let shape = Arc::new(plainest(op, name, table));
        let (level, why) = of_shape(&shape, table, trusted);
        Standing::add(standings, name, op, level, why);
        if op == Op::Insert && level != Level::Apart {
            let kept = certainty::of_plainest(table).map_or(Ok(()), Err);
            Standing::add_kept(standings, kept);
        }
    }
}

fn of_shape(shape: &Arc<Shape>, table: &Arc<Table>, trusted: &Trusted) -> (Level, Option<Apart>) {
    let compiled = Compiled::of_shape(Numbers::default(), false, shape, table, trusted);
    match (compiled.apart, compiled.fused) {
        (Some(why), _) => (Level::Apart, Some((*why).clone())),
        (None, Some(_)) => (Level::Fused, None),
        (None, None) => (Level::Grouped, grouped(shape, table, trusted)),
    }
}

fn plainest(op: Op, name: &TableName, facts: &Facts) -> Shape {
    let mut columns = facts.columns.iter().filter(|c| !c.always_generated);
    let set: Vec<&Column> = match op {
        Op::Insert => columns.clone().filter(|c| !c.has_default).collect(),
        Op::Update => columns.clone().filter(|c| !facts.is_key(&c.name)).collect(),
        Op::Delete | Op::Get => Vec::new(),
    };
    // If there is no such column, another one takes its place.
    let writes = matches!(op, Op::Insert | Op::Update);
    let other = columns.next_back().filter(|_| writes && set.is_empty());
    let columns = set.into_iter().chain(other);
    Shape::new(ShapeParts {
        op,
        table: name.clone(),
        columns: columns.map(|column| column.name.clone()).collect(),
        key: Key::Columns(key(facts).into()),
        on_conflict: OnConflict::Error,
        returning: match op {
            Op::Get => Returning::All,
            _ => Returning::Nothing,
        },
    })
}

/// Returns the columns that rows are named by.
fn key(facts: &Facts) -> Vec<Name> {
    let mut others = facts.uniques.iter().filter(|unique| unique.immediate);
    let first = || others.next().map(|unique| &*unique.columns);
    let places = facts.primary().or_else(first).unwrap_or(&[0]);
    let columns = places.iter().filter_map(|place| facts.columns.get(*place));
    columns.map(|column| column.name.clone()).collect()
}

/// Returns the reason why writes that may share a transaction share no statement.
fn grouped(shape: &Shape, facts: &Facts, trusted: &Trusted) -> Option<Apart> {
    let parsed = of_shape::of_shape(shape, &key(facts), facts);
    let proven = match level::of_statement(&parsed, facts, trusted) {
        windrow_proof::Level::Grouped(why) => Some((*why).clone()),
        _ => None,
    };
    proven
        .or_else(|| level::of_table(facts))
        .or_else(|| of_key(shape, facts))
        .or_else(|| moved(shape, facts))
        .or_else(|| without_arrays(shape, facts))
}

fn of_key(shape: &Shape, facts: &Facts) -> Option<Apart> {
    if shape.op == Op::Insert {
        return None;
    }
    let key = key(facts);
    let places: Option<Vec<usize>> = key.iter().map(|name| facts.place_of(name)).collect();
    if places.is_none_or(|places| facts.unique_of(&places).is_none()) {
        let apart = Apart::of("no unique key").by(format!("table {}", facts.name));
        return Some(apart.advised("a primary key tells its rows apart"));
    }
    let vague = find(&key, facts, |column| !column.makes_keys())?;
    Some(Apart::of("a key whose equal values may be spelled in several ways").by(vague))
}

fn moved(shape: &Shape, facts: &Facts) -> Option<Apart> {
    let moved = shape.op == Op::Update && shape.columns.iter().any(|name| facts.is_key(name));
    let phrase = match facts.hidden_unique {
        true => "a unique index that is deferrable, partial or over expressions",
        false => "an update of a unique key",
    };
    moved.then(|| Apart::of(phrase).by(format!("table {}", facts.name)))
}

fn without_arrays(shape: &Shape, facts: &Facts) -> Option<Apart> {
    let alone = find(&shape.columns, facts, |c| c.array_param().is_none())?;
    Some(Apart::of("a type without arrays").by(alone))
}

fn find(names: &[Name], facts: &Facts, holds: impl Fn(&Column) -> bool) -> Option<String> {
    let mut columns = facts.columns.iter().filter(|c| names.contains(&c.name));
    let found = columns.find(|column| holds(column))?;
    Some(format!("column {} of table {}", found.name, facts.name))
}
