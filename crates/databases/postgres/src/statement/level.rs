//! Decides what the writes of a statement may share, by the proof over the catalog.

use std::sync::Arc;

use windrow_core::{Apart, Expression, Op, ParsedStatement};
use windrow_proof::{Action, Clocked, Level, Trusted};

use super::parsed::{given, sets};
use super::set::Fused;
use crate::catalog::table::Facts;
use crate::moment::Moment;

/// The extent to which writes of a statement share transactions and statements.
pub(crate) struct Sharing {
    /// True if all code that the statement runs is proven for each row.
    pub(crate) is_proven: bool,
    pub(crate) apart: Option<Arc<Apart>>,
    pub(crate) moment: Moment,
    pub(crate) fused: Option<Fused>,
    pub(crate) telling: Option<Fused>,
}

/// Returns the level of a statement's writes.
pub(crate) fn of_statement(parsed: &ParsedStatement, facts: &Facts, trusted: &Trusted) -> Level {
    if facts.dialect.plain_catalog {
        return match of_table(facts) {
            None => Level::Fused,
            Some(why) => Level::Grouped(Arc::new(why)),
        };
    }
    with_action(parsed, facts, |action| facts.judge(action, trusted))
}

/// Returns the code that a table runs for a statement's writes and that reads the transaction's
/// clock.
pub(crate) fn clocked(parsed: &ParsedStatement, facts: &Facts, trusted: &Trusted) -> Clocked {
    with_action(parsed, facts, |action| facts.clocked(action, trusted))
}

/// Calls a function with what the statement does to its table.
fn with_action<T>(
    parsed: &ParsedStatement,
    facts: &Facts,
    judge: impl FnOnce(&Action<'_>) -> T,
) -> T {
    let update = parsed.conflict.as_ref().filter(|conflict| conflict.update);
    let given = given(parsed, facts);
    let is_given = |name: &str| {
        let mut given = given.iter().flatten();
        given.any(|(column, _)| ***column == *name)
    };
    let to_default = |name: &str| {
        let mut set = parsed.assignments.iter();
        set.any(|(column, value)| **column == *name && *value == Expression::Default)
    };
    let assigned = |name: &str| match update {
        Some(conflict) => sets(conflict, name),
        None => parsed
            .assignments
            .iter()
            .any(|(column, _)| **column == *name),
    };
    let action = Action {
        inserts: parsed.op == Op::Insert,
        updates: parsed.op == Op::Update || update.is_some(),
        deletes: parsed.op == Op::Delete,
        defaults: &|name| match parsed.op {
            Op::Insert => !is_given(name),
            _ => to_default(name),
        },
        sets: &assigned,
        is_key: &|name| facts.is_key(name),
    };
    judge(&action)
}

/// Returns the reason why no writes to the table become one statement, whatever they do.
pub(crate) fn of_table(facts: &Facts) -> Option<Apart> {
    let phrase = match facts.dialect.plain_catalog {
        true => "a trigger, row security or a reference to itself",
        false => "a reference to itself",
    };
    (!facts.fuses).then(|| Apart::of(phrase).by(format!("table {}", facts.name)))
}
