//! Joins the writes of a batch with their tables, and creates tables and columns that they need.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::{Fault, Name, Op, Retry, TableName, Verdict, Write};
use windrow_database::demand::Demand;

use super::batch::{Batch, Tables};
use super::cache::Catalog;
use super::connection::Connection;
use super::settle::Break;
use crate::catalog::create;
use crate::catalog::schema;
use crate::catalog::table::Table;
use crate::fault::{Scope, Trouble};

impl Connection {
    /// Reads the tables that are not known, or all of them if `is_stale` is set. Joins the writes
    /// with their tables, and creates tables and columns that are missing.
    pub(super) async fn begin(
        &mut self,
        batch: &mut Batch<'_>,
        is_stale: bool,
    ) -> Result<(), Break> {
        self.bind(batch, is_stale.then_some(Duration::ZERO)).await?;
        // A write must not be refused because of a description that is out of date.
        if !is_stale && self.has_stale_refusals(batch).await? {
            self.bind(batch, Some(Duration::ZERO)).await?;
        }
        if self.creates && self.grow(batch).await? {
            self.bind(batch, Some(Duration::ZERO)).await?;
        }
        batch.conclude_refused();
        Ok(())
    }

    /// Returns true if a table of a refused write is not as described.
    async fn has_stale_refusals(&mut self, batch: &Batch<'_>) -> Result<bool, Break> {
        let refused = batch
            .units
            .iter()
            .zip(&batch.refused)
            .filter(|(_, r)| r.is_some());
        let mut names: Vec<&TableName> = Vec::new();
        for write in refused.flat_map(|(unit, _)| unit.writes()) {
            if !names.contains(&&write.shape.table) {
                names.push(&write.shape.table);
            }
        }
        for name in names {
            // A table that does not exist was read by this batch.
            let Some(table) = self.catalog.get(name) else {
                continue;
            };
            if table.print.is_none() {
                return Ok(true);
            }
            self.verified.remove(&table.version);
            match self.verify(&table).await {
                Ok(()) => {}
                Err(Break::Stale | Break::Locked(..)) => return Ok(true),
                Err(other) => return Err(other),
            }
        }
        Ok(false)
    }

    /// Joins the writes with descriptions that are younger than `max_age`, or that the catalog
    /// holds to be fresh.
    async fn bind(
        &mut self,
        batch: &mut Batch<'_>,
        max_age: Option<Duration>,
    ) -> Result<(), Break> {
        let mut tables: Tables<'_> = HashMap::new();
        for name in batch.tables() {
            let is_young =
                |table: &Arc<Table>| max_age.is_none_or(|max| table.read_at.elapsed() < max);
            let known = self.catalog.fresh(name).filter(is_young);
            let table = match known {
                Some(table) => Some(table),
                None => match schema::read(&mut self.session, name).await {
                    Ok(facts) => {
                        let table = self.catalog.put(name, facts);
                        let version = table.as_ref().map(|table| table.version);
                        self.verified
                            .extend(version.map(|version| (version, Instant::now())));
                        table
                    }
                    Err(Trouble::Refused(refusal)) if refusal.scope != Scope::Connection => {
                        let verdict = self.refusal_of_table(refusal.fault);
                        batch.conclude_table(name, &verdict);
                        None
                    }
                    Err(trouble) => return Err(trouble.into()),
                },
            };
            tables.insert(name, table);
        }
        let catalog = &self.catalog;
        batch.bind(&tables, &|shape, table| catalog.compile(shape, table));
        Ok(())
    }

    /// Creates the tables and columns that rows need. Returns true if there were any.
    async fn grow(&mut self, batch: &mut Batch<'_>) -> Result<bool, Break> {
        let demands = demands_of(batch, &self.catalog, self.received_at.as_ref());
        let mut grown = false;
        for (name, demand) in &demands {
            grown = true;
            match create::grow(&mut self.session, name, demand, self.extends).await {
                Ok(()) => {}
                Err(Trouble::Lost(why)) => return Err(Break::Lost(why)),
                Err(Trouble::Refused(refusal)) => {
                    let verdict = self.refusal_of_table(refusal.fault);
                    conclude_unfit(batch, name, &verdict);
                }
            }
        }
        Ok(grown)
    }

    /// Returns the verdict of units whose table cannot be read or changed.
    fn refusal_of_table(&self, fault: Fault) -> Verdict {
        match fault.retry() {
            Retry::AfterLock => self.waits(fault),
            _ if fault.may_retry() => Verdict::RolledBack(fault),
            _ => Verdict::Final(Err(fault.into())),
        }
    }
}

/// Returns the tables and columns that the rows of a batch need and that do not exist.
fn demands_of<'a>(
    batch: &Batch<'a>,
    catalog: &Catalog,
    received_at: Option<&Name>,
) -> Vec<(&'a TableName, Demand)> {
    let open = batch
        .units
        .iter()
        .zip(&batch.verdicts)
        .filter(|(_, verdict)| verdict.is_none());
    let writes = open.flat_map(|(unit, _)| unit.writes());
    let mut demands = Demand::of_writes(writes, received_at);
    demands.retain(|(name, demand)| match catalog.get(name) {
        None => demand.new.is_wanted(),
        Some(table) => !create::changes(&table.facts, demand).is_empty(),
    });
    demands
}

/// Sets the verdict of the units whose rows do not fit the table.
fn conclude_unfit(batch: &mut Batch<'_>, table: &TableName, verdict: &Verdict) {
    let writes = |write: &Write| write.shape.table == *table && write.shape.op == Op::Insert;
    let unfit: Vec<(u32, usize)> = (0_u32..)
        .zip(batch.units)
        .filter_map(|(unit, of)| {
            let refused = batch
                .refused
                .get(unit as usize)
                .is_some_and(Option::is_some);
            let at = of.writes().iter().position(writes)?;
            refused.then_some((unit, at))
        })
        .collect();
    for (unit, at) in unfit {
        batch.conclude(unit, verdict.for_write(at));
    }
}
