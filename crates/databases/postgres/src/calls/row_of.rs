//! The one row that a call may change, known before the call runs: replicas get its key.
//!
//! The call may turn out to change no row, so replicas read the row after the call.

use std::sync::Arc;

use smallvec::SmallVec;
use windrow_core::{
    Arguments, Expression, Formats, KeyedRow, Name, Op, ParsedStatement, TableName, Value,
};

use super::describe::Description;
use super::row_plan::Source;
use crate::catalog::column::Column;
use crate::catalog::table::Facts;
use crate::inventory::keeps;
use crate::statement::parsed::{given, sets};
use crate::statement::set::GeneratedColumn;

/// The plan by which the calls of a statement name their row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowOf {
    table: TableName,
    columns: Arc<[Name]>,
    /// Sources of the key's values; `None` for a value from a sequence, which is returned to the
    /// call.
    values: Box<[Option<Source>]>,
}

impl RowOf {
    /// Returns the plan; `None` if the statement does not say which row its calls change. `proven`:
    /// the code that its table runs does not change the given key.
    pub(super) fn of(
        parsed: &ParsedStatement,
        description: &Description,
        facts: &Facts,
        (generated, proven): (Option<&GeneratedColumn>, bool),
    ) -> Option<Self> {
        let relation = description.relation.as_ref()?;
        let key: Option<Vec<&Column>> = facts
            .primary()?
            .iter()
            .map(|place| facts.columns.get(*place))
            .collect();
        let key = key.filter(|_| parsed.set_based && keeps_key(parsed, facts, proven))?;
        let inserts = parsed.op == Op::Insert;
        let named: Vec<(&Name, &Expression)> = match inserts {
            true => given(parsed, facts)?,
            false => parsed.keys.iter().map(|(name, sql)| (name, sql)).collect(),
        };
        let source = |column: &&Column| {
            let known = named.iter().find(|(name, _)| **name == column.name);
            let Some((_, value)) = known else {
                let taken = generated.filter(|g| inserts && g.is_reported && g.name == column.name);
                return taken.map(|_| None);
            };
            if inserts && !keeps(column) {
                return None;
            }
            Source::compared(column, value, &description.parameters, relation.utc).map(Some)
        };
        Some(Self {
            table: facts.name.clone(),
            columns: key.iter().map(|column| column.name.clone()).collect(),
            values: key.iter().map(source).collect::<Option<_>>()?,
        })
    }

    /// Returns the row of a call; `None` if its key may be stored as another one.
    pub(super) fn row(&self, arguments: &Arguments, formats: &Formats) -> Option<KeyedRow> {
        let raw: SmallVec<[Option<&[u8]>; 16]> = arguments.iter().collect();
        let value = |source: &Option<Source>| {
            let Some(source) = source else {
                return Some(None);
            };
            let value = source.value(&raw, formats)?;
            (value != Value::Null).then_some(Some(value))
        };
        Some(KeyedRow {
            table: self.table.clone(),
            columns: Arc::clone(&self.columns),
            values: self.values.iter().map(value).collect::<Option<_>>()?,
        })
    }
}

/// Returns true if the row has the named key both before and after the call.
fn keeps_key(parsed: &ParsedStatement, facts: &Facts, proven: bool) -> bool {
    let places = facts.primary().unwrap_or_default();
    let columns = places.iter().filter_map(|place| facts.columns.get(*place));
    let names: Vec<&Name> = columns.map(|column| &column.name).collect();
    let is_set = |name: &&Name| parsed.assignments.iter().any(|(set, _)| set == *name);
    let update = parsed.conflict.as_ref().filter(|conflict| conflict.update);
    // A row that conflicts may be another row, unless the conflict is on the same key.
    let is_other = update.is_some_and(|conflict| {
        let target = conflict.columns.as_deref().unwrap_or_default();
        let same = target.len() == names.len() && names.iter().all(|name| target.contains(name));
        !same || names.iter().any(|name| sets(conflict, name))
    });
    (proven || !facts.has_hooks) && !is_other && !names.iter().any(is_set)
}
