//! Every write joined with its table: is it sound, does it look good, which row does
//! it touch.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::{Fault, FaultClass, Name, Op, RowDone, RowWrite, Rung, Shape, TableName, Value};
use windrow_database::plan::{self, Fence};
use windrow_database::web::{Batch, BoundWrite};

use super::key;
use super::key::Found;
use super::knowledge::Knowledge;
use super::statement::{Statement, compile};
use crate::values::encode;

/// The writes of a batch that can be sent, and the statements that they are sent by.
#[derive(Debug, Default)]
pub(super) struct BoundBatch {
    /// By group. Even groups go out together, the odd one behind each holds writes that go one by
    /// one.
    pub(super) statements: Vec<Arc<Statement>>,
    pub(super) writes: Vec<BoundWrite>,
}

/// Joins all writes without a verdict with their tables. Invalid writes get their error; writes
/// that cannot find a row get the outcome of no rows.
pub(super) fn bind(batch: &mut Batch<'_>, knowledge: &mut Knowledge, creates: bool) -> BoundBatch {
    let mut bound = BoundBatch::default();
    // By what they are, not by address: equal shapes of different requests are one.
    let mut groups: HashMap<&Shape, Result<u32, Fault>> = HashMap::new();
    let mut tables: Vec<TableName> = Vec::new();
    let pending: Vec<_> = batch.pending().collect();
    for (at, write) in pending {
        let group = groups.entry(&*write.shape).or_insert_with(|| {
            let statement = statement(&write.shape, knowledge, creates)?;
            bound.statements.push(statement);
            u32::try_from(bound.statements.len() - 1)
                .map_err(|_| Fault::internal("too many shapes"))
        });
        let group = match group {
            Ok(group) => *group,
            Err(fault) => {
                batch.fail(at, Rung::Solo, fault.clone());
                continue;
            }
        };
        let Some(statement) = bound.statements.get(group as usize) else {
            continue;
        };
        let found = match look(statement, write, knowledge, creates) {
            Look::Good(found) => found,
            Look::Senseless(fault) => {
                batch.fail(at, Rung::Solo, fault);
                continue;
            }
            Look::Nothing(done) => {
                batch.done(at, Rung::Solo, done);
                continue;
            }
        };
        let name = &statement.table.name;
        let table = tables
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                tables.push(name.clone());
                tables.len() - 1
            });
        let alone = !statement.fuses && !statement.reads || is_suspect(statement, write);
        let unknown = found == Found::Unknown && !statement.table.primary.is_empty();
        bound.writes.push(BoundWrite {
            at,
            group: plan::group_of(group, !alone),
            table: u32::try_from(table).unwrap_or(u32::MAX),
            key: found.hash(&statement.table),
            reads: statement.reads,
            fence: if unknown { Fence::Table } else { Fence::None },
        });
    }
    bound
}

enum Look {
    Good(Found),
    Senseless(Fault),
    Nothing(RowDone),
}

fn look(statement: &Statement, write: &RowWrite, knowledge: &Knowledge, creates: bool) -> Look {
    if write.row.len() != statement.width {
        return Look::Senseless(wrong_length(statement, write));
    }
    if creates && let Some(name) = missing(statement, write) {
        return Look::Senseless(knowledge.not_grown(&statement.table.name, name));
    }
    for slot in &statement.slots {
        let value = write.row.get(slot.place).unwrap_or(&Value::Null);
        if let Err(why) = encode::check(slot.column.kind, value) {
            let column = &slot.column.name;
            let message = format!("the value of column \"{column}\" cannot be sent: {}", why.0);
            let fault = Fault::new(FaultClass::Value, "22003", message);
            let table = &*statement.table.name.table;
            return Look::Senseless(fault.with_table(Some(table)).with_column(Some(&**column)));
        }
    }
    let finds = statement.op != Op::Insert;
    let keys = statement.slots.iter().rev().take(statement.key_slots);
    let null = |place: usize| write.row.get(place).is_none_or(Value::is_null);
    if finds && keys.into_iter().any(|slot| null(slot.place)) {
        return Look::Nothing(super::lookup::none(statement));
    }
    Look::Good(
        match key::find(&statement.table, &statement.key, &write.row) {
            Found::Nothing => Found::Unknown,
            found => found,
        },
    )
}

/// A column that is not there, and that the row has a value for.
pub(super) fn missing<'w>(statement: &Statement, write: &'w RowWrite) -> Option<&'w Name> {
    let columns = write.shape.columns.iter().zip(write.values());
    let mut absent = columns.filter(|(name, _)| statement.table.column(name).is_none());
    absent
        .find(|(_, value)| !value.is_null())
        .map(|(name, _)| name)
}

fn is_suspect(statement: &Statement, write: &RowWrite) -> bool {
    let stored = statement.slots.len() - statement.key_slots;
    let values = statement.slots.iter().take(stored);
    let mut values = values.filter_map(|slot| Some((slot, write.row.get(slot.place)?)));
    let looked_for = statement.slots.iter().skip(stored);
    let mut looked_for = looked_for.filter_map(|slot| Some((slot, write.row.get(slot.place)?)));
    values.any(|(slot, value)| encode::is_suspect(&slot.column, value))
        || looked_for.any(|(slot, value)| encode::is_suspect(&slot.column, value))
}

fn statement(
    shape: &Arc<Shape>,
    knowledge: &mut Knowledge,
    creates: bool,
) -> Result<Arc<Statement>, Fault> {
    let table = knowledge.table(&shape.table)?;
    if let Some(known) = knowledge.statements.get(shape)
        && known.table.version == table.version
    {
        return Ok(known.clone());
    }
    let statement = Arc::new(compile(shape, &table, creates)?);
    knowledge.remember(shape.clone(), statement.clone());
    Ok(statement)
}

fn wrong_length(statement: &Statement, write: &RowWrite) -> Fault {
    let (given, columns) = (write.row.len(), write.shape.columns.len());
    let table = &statement.table.name;
    if write.shape.has_key_values() && given >= columns {
        let names = statement.table.key_names(&write.shape.key);
        return Fault::invalid(format!(
            "the key of table {table} is ({}): {} values are needed, {} given",
            names.join(", "),
            names.len(),
            given - columns
        ));
    }
    Fault::invalid(format!(
        "a row for table {table} has {given} values for {columns} columns"
    ))
}
