//! Matches writes with the descriptions of their tables: reads unknown tables, creates missing
//! ones, and compiles statements.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use windrow_core::{Name, Purpose, Shape, SqlCall, TableName, Tally, Unit, Write};
use windrow_database::demand::Demand;
use windrow_database::named_key::UniqueKeys as _;
use windrow_pgwire::wire::{Broken, Wire};

use crate::calls::renew::renew;
use crate::catalog::table::{Facts, Table};
use crate::catalog::{create, schema};
use crate::compiled::{Compiled, CompiledForm};
use crate::dialect::Dialect;
use crate::executor::batch::{Batch, Refused};
use crate::executor::codes::verdict_of_table;
use crate::executor::statements::{CompiledKey, Statements};
use crate::lane_catalog::LaneCatalog;
use crate::row_statement::key_names;

/// The tables that shapes name; `None` for a table that does not exist or could not be read.
type Tables<'u> = HashMap<&'u TableName, Option<Arc<Table>>>;

/// Matches the writes of a batch with their tables, by the descriptions in the catalog and those
/// that the server returns.
pub(super) struct Placing<'c> {
    pub(super) wire: &'c mut Wire,
    pub(super) dialect: &'static Dialect,
    pub(super) catalog: &'c LaneCatalog,
    pub(super) statements: &'c mut Statements,
    pub(super) purpose: Purpose,
}

impl Placing<'_> {
    /// Matches the writes with their tables' descriptions. If the server refuses a description, the
    /// writes that need it get the reason as their verdict. `again`: reads all tables, known or
    /// not.
    pub(super) async fn place(
        &mut self,
        batch: &mut Batch<'_>,
        again: bool,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        let (tables, mut refused) = self.read_tables(batch.units, again, tally).await?;
        refused.extend(self.read_statements(batch.units, tally).await?);
        self.conclude_refused(batch, refused);
        batch.place(|write| compile(&tables, self.catalog, self.statements, write));
        let tables = batch.shapes.iter().map(|compiled| &*compiled.table);
        if self.statements.has_old_plans(tables) {
            tally.round_trips += 1;
            drop(self.wire.simple("DISCARD PLANS").await?);
        }
        Ok(())
    }

    /// Reads the tables that shapes name, unless they are known.
    async fn read_tables<'u>(
        &mut self,
        units: &'u [Unit],
        again: bool,
        tally: &mut Tally,
    ) -> Result<(Tables<'u>, Vec<Refused>), Broken> {
        let catalog = self.catalog;
        let (mut tables, mut refused) = (HashMap::new(), Vec::new());
        for name in names(units) {
            // A guard may not notice a key that was created later.
            let misses = |table: &Arc<Table>| needs_key(units, name, table);
            let known = catalog.tables.fresh(name);
            let table = match known.filter(|table| !again && !misses(table)) {
                Some(table) => Some(table),
                None => {
                    tally.round_trips += 1;
                    match schema::read(self.wire, name, self.dialect).await? {
                        Ok(facts) => {
                            let facts = match catalog.overrides {
                                true => facts.map(Facts::overriding),
                                false => facts,
                            };
                            catalog.tables.put(name, facts)
                        }
                        Err(error) => {
                            let units = (0_u32..).zip(units);
                            refused.push(Refused::of(error.into(), units, is_of(name)));
                            None
                        }
                    }
                }
            };
            tables.insert(name, table);
        }
        Ok((tables, refused))
    }

    /// Describes retired statements of SQL clients again. The description of any other statement
    /// holds unless the check after the batch fails.
    async fn read_statements(
        &mut self,
        units: &[Unit],
        tally: &mut Tally,
    ) -> Result<Option<Refused>, Broken> {
        let catalog = self.catalog;
        let calls = units.iter().flat_map(Unit::writes).filter_map(Write::call);
        let unknown: Vec<&SqlCall> = calls.filter(|call| catalog.calls.lacks(call)).collect();
        if unknown.is_empty() {
            return Ok(None);
        }
        tally.round_trips += 1;
        let Err(fault) = renew(self.wire, &catalog.calls, &catalog.trusted, &unknown).await? else {
            return Ok(None);
        };
        let is_retired = |write: &Write| {
            let call = write.call();
            call.is_some_and(|call| call.statement.is_retired())
        };
        let retired = |unit: &Unit| unit.writes().iter().any(is_retired);
        let places = (0_u32..).zip(units).filter(|(_, unit)| retired(unit));
        let units = places.map(|(place, _)| (place, 0)).collect();
        Ok(Some(Refused { fault, units }))
    }

    /// Creates missing tables and columns for units that do not fit. Returns true if anything was
    /// tried.
    pub(super) async fn grow(
        &mut self,
        batch: &mut Batch<'_>,
        tally: &mut Tally,
    ) -> Result<bool, Broken> {
        let catalog = self.catalog;
        if !catalog.creates || batch.is_of_calls {
            return Ok(false);
        }
        let units = batch.units;
        let open: Vec<u32> = batch.misfits().collect();
        let open = open.iter();
        let open = open.filter_map(|place| Some((*place, units.get(*place as usize)?)));
        let writes = open.clone().flat_map(|(_, unit)| unit.writes());
        let (mut is_tried, mut refused) = (false, Vec::new());
        for (name, demand) in &Demand::of_writes(writes, catalog.received_at.as_ref()) {
            let known = catalog.tables.get(name);
            if !create::asks_of(demand, known.as_ref().map(|table| &table.facts)) {
                continue;
            }
            is_tried = true;
            tally.round_trips += 1;
            let (wire, dialect) = (&mut *self.wire, self.dialect);
            let made = create::grow(wire, dialect, name, demand, catalog.extends).await?;
            if let Err(fault) = made {
                let has = |column: &Name| {
                    let known = known.as_ref();
                    known.is_some_and(|table| table.place_of(column).is_some())
                };
                let asks = |write: &Write| Demand::is_asked_by(write, name, has);
                refused.push(Refused::of(fault, open.clone(), asks));
            }
        }
        self.conclude_refused(batch, refused);
        Ok(is_tried)
    }

    fn conclude_refused(&self, batch: &mut Batch<'_>, refused: impl IntoIterator<Item = Refused>) {
        for refused in refused {
            let verdict = verdict_of_table(refused.fault.clone(), self.purpose);
            batch.conclude_refused(&refused, &verdict);
        }
    }
}

/// Compiles the statement of a write. Returns `None` if its table does not exist.
fn compile(
    tables: &Tables<'_>,
    catalog: &LaneCatalog,
    statements: &mut Statements,
    write: &Write,
) -> Option<Arc<Compiled>> {
    let Some(call) = write.call() else {
        let shape = &write.shape;
        let table = tables.get(&shape.table)?.as_ref()?;
        let key = CompiledKey::Shape(Arc::clone(shape));
        let of_shape =
            |numbers| Compiled::of_shape(numbers, catalog.creates, shape, table, &catalog.trusted);
        return Some(statements.compile(&key, table.version, |_| true, of_shape));
    };
    let statement = &call.statement;
    let renewed = catalog.calls.renewed(call);
    let version = renewed.as_ref().map_or(0, |(generation, _)| *generation);
    let key = CompiledKey::Statement(statement.id(), call.fresh && statement.is_retired());
    let fits = |compiled: &Compiled| match &compiled.form {
        CompiledForm::Call(bound) => bound.is_of(call),
        CompiledForm::Row(_) => false,
    };
    Some(statements.compile(&key, version, fits, |numbers| {
        let renewed = renewed.map(|(_, renewed)| renewed);
        Compiled::of_call(numbers, call, catalog.calls.meaning(statement), renewed)
    }))
}

/// Returns the shapes of all writes with Windrow's own values, without consecutive duplicates.
fn shapes(units: &[Unit]) -> impl Iterator<Item = &Arc<Shape>> {
    let mut last: Option<&Arc<Shape>> = None;
    let writes = units.iter().flat_map(Unit::writes);
    let rows = writes.filter(|write| write.call().is_none());
    rows.map(|write| &write.shape).filter(move |shape| {
        let before = last.replace(shape);
        before.is_none_or(|before| !Arc::ptr_eq(before, shape))
    })
}

/// Lists the tables that shapes name, each once.
fn names(units: &[Unit]) -> Vec<&TableName> {
    let mut seen = HashSet::new();
    let tables = shapes(units).map(|shape| &shape.table);
    tables.filter(|table| seen.insert(*table)).collect()
}

/// Returns true if a write needs a key that the table is not known to have.
fn needs_key(units: &[Unit], name: &TableName, table: &Table) -> bool {
    let lacks =
        |shape: &Shape| key_names(shape, table).is_none() || table.check_named_key(shape).is_err();
    shapes(units).any(|shape| shape.table == *name && lacks(shape))
}

fn is_of(name: &TableName) -> impl Fn(&Write) -> bool {
    move |write| write.shape.table == *name
}
