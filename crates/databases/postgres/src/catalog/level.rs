//! What writes of rows may share, by the proof over the catalog.

use std::sync::Arc;

use windrow_core::{Apart, Name, OnConflict, Op, Shape};
use windrow_proof::{Action, Clocked, Level, Trusted};

use super::table::Facts;

/// The level of a shape's writes. `key`: the names of its key's columns.
pub(crate) fn of_shape(shape: &Shape, key: &[Name], facts: &Facts, trusted: &Trusted) -> Level {
    if facts.dialect.plain_catalog {
        return match of_table(facts) {
            None => Level::Fused,
            Some(why) => Level::Grouped(Arc::new(why)),
        };
    }
    with_action(shape, key, facts, |action| facts.judge(action, trusted))
}

/// Finds what a table runs for a shape's writes that reads the transaction's clock. `key`: as for
/// [`of_shape`].
pub(crate) fn clocked(shape: &Shape, key: &[Name], facts: &Facts, trusted: &Trusted) -> Clocked {
    with_action(shape, key, facts, |action| facts.clocked(action, trusted))
}

/// Calls a function with what a shape's writes do to their table.
fn with_action<T>(
    shape: &Shape,
    key: &[Name],
    facts: &Facts,
    judge: impl FnOnce(&Action<'_>) -> T,
) -> T {
    let upsert = shape.op == Op::Insert && shape.on_conflict == OnConflict::Update;
    let given = |name: &str| shape.columns.iter().any(|column| **column == *name);
    let is_key = |name: &str| facts.is_key(name);
    let action = Action {
        inserts: shape.op == Op::Insert,
        updates: shape.op == Op::Update || upsert,
        deletes: shape.op == Op::Delete,
        defaults: &|name| shape.op == Op::Insert && !given(name),
        sets: &|name| given(name) && !(upsert && key.iter().any(|column| **column == *name)),
        is_key: &is_key,
    };
    judge(&action)
}

/// Why no writes to the table become one statement, whatever they do.
pub(crate) fn of_table(facts: &Facts) -> Option<Apart> {
    let phrase = match facts.dialect.plain_catalog {
        true => "a trigger, row security or a reference to itself",
        false => "a reference to itself",
    };
    (!facts.fuses).then(|| Apart::of(phrase).by(format!("table {}", facts.name)))
}
