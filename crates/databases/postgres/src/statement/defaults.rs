//! The defaults that the writes of a statement use.

use windrow_core::{Expression, Op, ParsedStatement};

use super::parsed::{given, has_word};
use crate::catalog::column::Column;
use crate::catalog::table::Facts;

/// Lists the columns whose defaults a statement's writes use: those that an insert gives no value,
/// and those that an update sets to DEFAULT.
///
/// # Errors
/// Several rows of one insert take values from a sequence, because any of them may contain DEFAULT.
pub(crate) fn used_defaults<'f>(
    parsed: &ParsedStatement,
    facts: &'f Facts,
) -> Result<Vec<&'f Column>, &'static str> {
    let columns = facts.columns.iter().filter(|c| c.default.is_some());
    if parsed.op != Op::Insert {
        let is_default = |column: &&Column| {
            let mut set = parsed.assignments.iter();
            set.any(|(name, value)| *name == column.name && *value == Expression::Default)
        };
        return Ok(columns.filter(is_default).collect());
    }
    if let Some(given) = given(parsed, facts) {
        let left = |column: &&Column| !given.iter().any(|(name, _)| **name == column.name);
        return Ok(columns.filter(left).collect());
    }
    let is_named = |column: &Column| {
        let named = parsed.columns.as_deref();
        named.is_none_or(|named| named.contains(&column.name))
    };
    match columns
        .clone()
        .any(|column| takes(column) && is_named(column))
    {
        true => Err("several rows with generated values"),
        false => Ok(columns.collect()),
    }
}

/// Returns true if the default of a column takes values from a sequence.
pub(crate) fn takes(column: &Column) -> bool {
    let default = column.default.as_deref().unwrap_or_default();
    column.sequence != 0 || has_word(default, &["nextval"])
}
