//! The one row that a call may change, told before it is executed: replicas are told of its key.
//!
//! It may well turn out to change none: whoever is told looks at what is there afterwards.

use std::sync::Arc;

use smallvec::SmallVec;
use windrow_calls::{Arguments, Expression, Formats, ParsedStatement};
use windrow_core::{KeyedRow, Name, Op, TableName, Value};

use super::describe::Description;
use super::row_plan::Source;
use crate::catalog::column::Column;
use crate::catalog::table::Facts;
use crate::inventory::keeps;
use crate::statement::parsed::{given, sets};
use crate::statement::set::GeneratedColumn;

/// How the calls of a statement name their row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowOf {
    table: TableName,
    columns: Arc<[Name]>,
    /// Where the values come from; `None`: from a sequence, and the call is told which.
    values: Box<[Option<Source>]>,
}

impl RowOf {
    /// `None`: the statement does not say which row its calls change. `proven`: what its table
    /// runs leaves the key as it is given.
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
                let taken = generated.filter(|g| inserts && g.told && g.name == column.name);
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

    /// The row of a call; `None`: its key is perhaps stored as another one.
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

/// Whether the row has the key, before and after, that the statement names.
fn keeps_key(parsed: &ParsedStatement, facts: &Facts, proven: bool) -> bool {
    let places = facts.primary().unwrap_or_default();
    let columns = places.iter().filter_map(|place| facts.columns.get(*place));
    let names: Vec<&Name> = columns.map(|column| &column.name).collect();
    let is_set = |name: &&Name| parsed.assignments.iter().any(|(set, _)| set == *name);
    let update = parsed.conflict.as_ref().filter(|conflict| conflict.update);
    // The row that is there already may be another one, unless it has the same key.
    let is_other = update.is_some_and(|conflict| {
        let target = conflict.columns.as_deref().unwrap_or_default();
        let same = target.len() == names.len() && names.iter().all(|name| target.contains(name));
        !same || names.iter().any(|name| sets(conflict, name))
    });
    (proven || !facts.has_hooks) && !is_other && !names.iter().any(is_set)
}
