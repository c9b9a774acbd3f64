//! Joins each write with its table, checks it, and finds the row that it touches and its statement.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::{Fault, FaultClass, Name, Op, Rung, Shape, TableName, Value, Write, WriteDone};
use windrow_database::plan::{Fence, group_of};
use windrow_database::shape_faults;
use windrow_database::web::{Batch, BoundWrite};

use super::key;
use super::key::RowKey;
use super::sql::{Statement, compile};
use crate::catalog::table::Table;
use crate::values::encode;

/// The most statements that a connection keeps.
const MAX_STATEMENTS: usize = 1_000;

/// The descriptions of a batch's tables, and their statements.
pub(super) struct Knowledge {
    pub(super) tables: HashMap<TableName, Result<Option<Arc<Table>>, Fault>>,
    /// Faults of tables that could not be created or extended.
    pub(super) not_grown: HashMap<TableName, Fault>,
    pub(super) statements: HashMap<Arc<Shape>, Arc<Statement>>,
}

impl Knowledge {
    /// Returns the description of a table.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(super) fn table(&self, name: &TableName) -> Result<Arc<Table>, Fault> {
        match self.tables.get(name) {
            Some(Ok(Some(table))) => Ok(table.clone()),
            Some(Err(fault)) => Err(fault.clone()),
            Some(Ok(None)) | None => {
                let fault = self.not_grown.get(name).cloned();
                Err(fault.unwrap_or_else(|| shape_faults::no_table(name)))
            }
        }
    }

    /// Returns the fault of a column that is missing although columns may be created.
    pub(super) fn not_grown(&self, table: &TableName, column: &Name) -> Fault {
        let known = self
            .not_grown
            .iter()
            .find(|(name, _)| name.table == table.table);
        let known = known.map(|(_, fault)| fault.clone());
        known.unwrap_or_else(|| shape_faults::no_column(table, column))
    }

    pub(super) fn remember(&mut self, shape: Arc<Shape>, statement: Arc<Statement>) {
        if self.statements.len() >= MAX_STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(shape, statement);
    }
}

/// The writes of a batch that can be sent, and their statements.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The statements by group. Groups with even numbers are sent together. The odd one after each
    /// holds writes that are sent one by one.
    pub(super) statements: Vec<Arc<Statement>>,
    pub(super) writes: Vec<BoundWrite>,
}

/// Joins all writes without a verdict with their tables. Invalid writes get their error; writes
/// that cannot find a row get the outcome of no rows.
pub(super) fn plan(batch: &mut Batch<'_>, knowledge: &mut Knowledge, creates: bool) -> Plan {
    let mut plan = Plan::default();
    // Compared by content, not by address: equal shapes of different requests are one.
    let mut groups: HashMap<&Shape, Result<u32, Fault>> = HashMap::new();
    let mut tables: Vec<TableName> = Vec::new();
    let pending: Vec<_> = batch.pending().collect();
    for (at, write) in pending {
        let group = groups.entry(&*write.shape).or_insert_with(|| {
            let statement = statement(&write.shape, knowledge, creates)?;
            plan.statements.push(statement);
            u32::try_from(plan.statements.len() - 1).map_err(|_| Fault::internal("too many shapes"))
        });
        let group = match group {
            Ok(group) => *group,
            Err(fault) => {
                batch.fail(at, Rung::Solo, fault.clone());
                continue;
            }
        };
        let Some(statement) = plan.statements.get(group as usize) else {
            continue;
        };
        let found = match check(statement, write, knowledge, creates) {
            Check::Sent(found) => found,
            Check::Invalid(fault) => {
                batch.fail(at, Rung::Solo, fault);
                continue;
            }
            Check::FindsNothing(done) => {
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
        let is_single = !statement.fuses && !statement.reads || is_suspect(statement, write);
        let unknown = found == RowKey::Unknown && !statement.table.primary.is_empty();
        plan.writes.push(BoundWrite {
            at,
            group: group_of(group, !is_single),
            table: u32::try_from(table).unwrap_or(u32::MAX),
            key: found.hash(&statement.table),
            reads: statement.reads,
            fence: if unknown { Fence::Table } else { Fence::None },
        });
    }
    plan
}

/// The result of the check of a write.
enum Check {
    Sent(RowKey),
    Invalid(Fault),
    FindsNothing(WriteDone),
}

fn check(statement: &Statement, write: &Write, knowledge: &Knowledge, creates: bool) -> Check {
    if write.row().len() != statement.width {
        return Check::Invalid(wrong_length(statement, write));
    }
    if creates && let Some(name) = missing(statement, write) {
        return Check::Invalid(knowledge.not_grown(&statement.table.name, name));
    }
    for slot in &statement.slots {
        let value = write.row().get(slot.place).unwrap_or(&Value::Null);
        if let Err(why) = encode::check(slot.column.kind, value) {
            let column = &slot.column.name;
            let message = format!("the value of column \"{column}\" cannot be sent: {}", why.0);
            let fault = Fault::new(FaultClass::Value, "22003", message);
            let table = &*statement.table.name.table;
            return Check::Invalid(fault.with_table(Some(table)).with_column(Some(&**column)));
        }
    }
    let finds = statement.op != Op::Insert;
    let keys = statement.slots.iter().rev().take(statement.key_slots);
    let null = |place: usize| write.row().get(place).is_none_or(Value::is_null);
    if finds && keys.into_iter().any(|slot| null(slot.place)) {
        return Check::FindsNothing(statement.gave(Vec::new()));
    }
    Check::Sent(
        match key::find(&statement.table, &statement.key, write.row()) {
            RowKey::NoRow => RowKey::Unknown,
            found => found,
        },
    )
}

/// Returns a column that does not exist although the row has a value for it.
pub(super) fn missing<'w>(statement: &Statement, write: &'w Write) -> Option<&'w Name> {
    let columns = write.shape.columns.iter().zip(write.values());
    let mut absent = columns.filter(|(name, _)| statement.table.column(name).is_none());
    absent
        .find(|(_, value)| !value.is_null())
        .map(|(name, _)| name)
}

fn is_suspect(statement: &Statement, write: &Write) -> bool {
    let stored = statement.slots.len() - statement.key_slots;
    let values = statement.slots.iter().take(stored);
    let mut values = values.filter_map(|slot| Some((slot, write.row().get(slot.place)?)));
    let looked_for = statement.slots.iter().skip(stored);
    let mut looked_for = looked_for.filter_map(|slot| Some((slot, write.row().get(slot.place)?)));
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

fn wrong_length(statement: &Statement, write: &Write) -> Fault {
    let names = statement.table.key_names(&write.shape.key);
    let table = &statement.table.name;
    shape_faults::wrong_length(&write.shape, table, names.iter(), write.row().len())
}
