//! Row writes for the executor.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use windrow_core::{Fault, FaultClass, Name, RowWrite, Shape, TableName, Unit, Value};
use windrow_database::demand::Demand;
use windrow_database::named_key::UniqueKeys as _;
use windrow_database::quote::push_table;
use windrow_pgwire::wire::Broken;

use super::catalog::RowCatalog;
use super::row_statement::{RowStatement, Trouble, key_names};
use crate::catalog::table::{Facts, Table};
use crate::catalog::{create, schema};
use crate::compiled::Compiled;
use crate::executor::form::{Asked, Look, Refused, StatementsOf, WorkKind};
use crate::executor::segment::{Mode, Prospect};
use crate::values::fit::Fit;

impl WorkKind for RowStatement {
    type Catalog = RowCatalog;
    /// The tables that the writes name; `None` for a table that does not exist or could not be
    /// read.
    type Tables<'u> = HashMap<&'u TableName, Option<Arc<Table>>>;
    type Key = Arc<Shape>;
    type Alike<'u> = *const Shape;

    const CLIENTS_OWN: bool = false;

    async fn read<'u>(
        server: Asked<'_>,
        catalog: &RowCatalog,
        units: &'u [Unit<RowWrite>],
        anew: bool,
    ) -> Result<(Self::Tables<'u>, Vec<Refused>), Broken> {
        let (mut tables, mut refused) = (HashMap::new(), Vec::new());
        for name in names(units) {
            // A key that was created later may not show in what a guard compares.
            let misses = |table: &Arc<Table>| needs_key(units, name, table);
            let known = catalog
                .tables
                .fresh(name)
                .filter(|table| !anew && !misses(table));
            let table = match known {
                Some(table) => Some(table),
                None => {
                    *server.round_trips += 1;
                    match schema::read(server.wire, name, server.dialect).await? {
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

    async fn grow(
        server: Asked<'_>,
        catalog: &RowCatalog,
        units: &[Unit<RowWrite>],
        open: impl Iterator<Item = u32> + Clone + Send,
    ) -> Result<Option<Vec<Refused>>, Broken> {
        if !catalog.creates {
            return Ok(None);
        }
        let open = open.filter_map(|place| Some((place, units.get(place as usize)?)));
        let writes = open.clone().flat_map(|(_, unit)| unit.work());
        let mut grown = None;
        for (name, demand) in &Demand::of_writes(writes) {
            let known = catalog.tables.get(name);
            if !create::asks_of(demand, known.as_ref().map(|table| &table.facts)) {
                continue;
            }
            let refused = grown.get_or_insert_with(Vec::new);
            *server.round_trips += 1;
            let (wire, dialect) = (&mut *server.wire, server.dialect);
            let made = create::grow(wire, dialect, name, demand, catalog.extends).await?;
            if let Err(fault) = made {
                let has = |column: &Name| {
                    known
                        .as_ref()
                        .is_some_and(|table| table.place_of(column).is_some())
                };
                let asks = |write: &RowWrite| Demand::is_asked_by(write, name, has);
                refused.push(Refused::of(fault, open.clone(), asks));
            }
        }
        Ok(grown)
    }

    fn alike(write: &RowWrite) -> *const Shape {
        Arc::as_ptr(&write.shape)
    }

    fn compile(
        tables: &Self::Tables<'_>,
        catalog: &RowCatalog,
        statements: &mut StatementsOf<Self>,
        write: &RowWrite,
    ) -> Option<Arc<Compiled<Self>>> {
        let shape = &write.shape;
        let table = tables.get(&shape.table)?.as_ref()?;
        let fits = |_: &Compiled<Self>| true;
        Some(statements.compile(shape, table.version, fits, |numbers| {
            Compiled::of_shape(numbers, catalog.creates, shape, table, &catalog.trusted)
        }))
    }

    fn look(
        compiled: &Compiled<Self>,
        write: &RowWrite,
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) -> Look {
        let (statement, table) = (&compiled.form, &compiled.table);
        let touch = statement.touch(table, write, scratch, hashes);
        let (fit, column) = statement.fit(table, write);
        let prospect = prospect(compiled, write, &fit, column.map(|c| &*c.name));
        let prospect = match prospect {
            Ok(prospect @ (Prospect::Good | Prospect::Apart(Mode::Fresh))) => {
                statement.judge(table, write).map(|()| prospect)
            }
            prospect => prospect,
        };
        let found_by = compiled.fused.iter().flat_map(|fused| &fused.found_by);
        let values = write.values();
        let is_null = |place: &usize| values.get(*place).is_none_or(Value::is_null);
        Look {
            prospect,
            sets: fit == Fit::Sure && !found_by.clone().any(is_null),
            touch,
        }
    }

    fn forget(compiled: &Compiled<Self>, catalog: &RowCatalog, changed: bool) {
        // A changed table is read again in any case, and keeps its version if it turns out to be
        // the same.
        if !changed {
            catalog.tables.forget(compiled.table.version);
        }
    }

    fn probe(write: &RowWrite) -> String {
        let mut sql = String::from("SELECT 1 FROM ");
        push_table(&mut sql, &write.shape.table);
        sql
    }
}

/// Returns the shapes of all writes in their order, each run of equal ones once.
fn shapes(units: &[Unit<RowWrite>]) -> impl Iterator<Item = &Arc<Shape>> {
    let mut last: Option<&Arc<Shape>> = None;
    let shapes = units.iter().flat_map(Unit::work).map(|write| &write.shape);
    shapes.filter(move |shape| {
        let before = last.replace(shape);
        before.is_none_or(|before| !Arc::ptr_eq(before, shape))
    })
}

/// Lists the tables that units are about, each once.
fn names(units: &[Unit<RowWrite>]) -> Vec<&TableName> {
    let mut seen = HashSet::new();
    let tables = shapes(units).map(|shape| &shape.table);
    tables.filter(|table| seen.insert(*table)).collect()
}

/// Returns true if a write needs a key that the table does not have, as far as is known.
fn needs_key(units: &[Unit<RowWrite>], name: &TableName, table: &Table) -> bool {
    let lacks =
        |shape: &Shape| key_names(shape, table).is_none() || table.check_named_key(shape).is_err();
    shapes(units).any(|shape| shape.table == *name && lacks(shape))
}

fn is_of(name: &TableName) -> impl Fn(&RowWrite) -> bool {
    move |write| write.shape.table == *name
}

/// Returns how the unit of a write has to run. Fails if Windrow itself refuses the write.
fn prospect(
    compiled: &Compiled<RowStatement>,
    write: &RowWrite,
    fit: &Fit,
    column: Option<&str>,
) -> Result<Prospect, Fault> {
    let statement = &compiled.form;
    match &statement.trouble {
        Some(Trouble::Unparsable) => return Ok(Prospect::Apart(Mode::Probe)),
        Some(Trouble::Senseless(fault)) => return Err(fault.clone()),
        _ if write.row.len() != statement.width() => {
            return Err(Fault::invalid(format!(
                "a request for a row of {} has {} values for {} columns",
                compiled.table.name,
                write.row.len(),
                statement.width()
            )));
        }
        Some(Trouble::Doomed) => return Ok(Prospect::Apart(Mode::Fresh)),
        None => {}
    }
    match fit {
        Fit::Unwritable(why) => {
            let column = column.unwrap_or_default();
            let message = format!("the value of column \"{column}\" cannot be read: {why}");
            let fault = Fault::new(FaultClass::Value, "22P02", message);
            let table = compiled.table.name.table.as_ref();
            Err(fault.with_table(Some(table)).with_column(Some(column)))
        }
        Fit::Bad => Ok(Prospect::Apart(Mode::Fresh)),
        Fit::Sure | Fit::Unsure => Ok(Prospect::Good),
    }
}
