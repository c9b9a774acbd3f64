//! Finds if ON CONFLICT is without effect for rows that have nothing in common with any other row.

use windrow_core::{Conflict, Expression, Name, Piece};

use crate::catalog::column::Column;
use crate::catalog::table::Facts;

/// Returns true for a clause that the server certainly accepts and that does nothing unless there
/// is a conflict: its target is a unique key or none, and DO UPDATE sets columns to those of the
/// row that was to be inserted.
pub(super) fn is_plain(conflict: &Conflict, facts: &Facts) -> bool {
    let Expression::Sql(pieces) = &conflict.sql else {
        return false;
    };
    let [Piece::Text(sql)] = &**pieces else {
        return false;
    };
    let column = |name: &Name| facts.columns.iter().find(|column| column.name == *name);
    let is_target = match &conflict.columns {
        Some(target) => {
            has_key(target, facts)
                && target
                    .iter()
                    .all(|name| column(name).is_some_and(|c| c.may_read))
        }
        None => sql
            .split_whitespace()
            .map(str::to_ascii_lowercase)
            .eq(["on", "conflict", "do", "nothing"]),
    };
    let is_set = |(name, value): &(Name, Expression)| {
        let column = column(name);
        column.is_some_and(|column| column.may_change) && is_excluded(value, facts)
    };
    is_target && !conflict.has_condition && conflict.assignments.iter().all(is_set)
}

/// Returns true if the columns are those of a unique key that is checked at once.
fn has_key(target: &[Name], facts: &Facts) -> bool {
    let is_named = |column: &Column| target.contains(&column.name);
    facts.uniques.iter().any(|unique| {
        let columns = unique.columns.iter().map(|place| facts.columns.get(*place));
        unique.immediate
            && unique.columns.len() == target.len()
            && columns.clone().all(|column| column.is_some_and(is_named))
    })
}

/// Returns true for `excluded.column`.
fn is_excluded(value: &Expression, facts: &Facts) -> bool {
    let Expression::Sql(pieces) = value else {
        return false;
    };
    let [Piece::Text(sql)] = &**pieces else {
        return false;
    };
    let Some((table, column)) = sql.split_once('.') else {
        return false;
    };
    let is_name = |text: &str, name: &str| match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"') == Some(name),
        None => text.eq_ignore_ascii_case(name),
    };
    is_name(table, "excluded")
        && facts
            .columns
            .iter()
            .any(|known| is_name(column, &known.name))
}
