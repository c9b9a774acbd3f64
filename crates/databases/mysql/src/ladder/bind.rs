//! Writes joined with what is known of their tables.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::{Fault, Retry, RowDone, TableName, Verdict};

use super::batch::{Batch, Tables};
use super::connection::Connection;
use super::demands;
use super::settle::Break;
use crate::catalog::create;
use crate::catalog::schema;
use crate::catalog::table::Table;
use crate::fault::{Scope, Trouble};

impl Connection {
    /// Reads the tables that are not known (or all of them), joins the writes with them, and makes
    /// what rows ask for.
    pub(super) async fn begin(&mut self, batch: &mut Batch<'_>, anew: bool) -> Result<(), Break> {
        self.bind(batch, anew.then_some(Duration::ZERO)).await?;
        // What Windrow itself refuses must not be refused by a description that is not true any
        // more.
        if !anew && self.doubts(batch).await? {
            self.bind(batch, Some(Duration::ZERO)).await?;
        }
        if self.creates && self.grow(batch).await? {
            self.bind(batch, Some(Duration::ZERO)).await?;
        }
        batch.conclude_refused();
        Ok(())
    }

    /// Whether a table of a write that is refused is not as it was described.
    async fn doubts(&mut self, batch: &Batch<'_>) -> Result<bool, Break> {
        let refused = batch
            .units
            .iter()
            .zip(&batch.refused)
            .filter(|(_, r)| r.is_some());
        let mut names: Vec<&TableName> = Vec::new();
        for write in refused.flat_map(|(unit, _)| unit.work()) {
            if !names.contains(&&write.shape.table) {
                names.push(&write.shape.table);
            }
        }
        for name in names {
            // One that is not there was looked for a moment ago.
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

    /// Joins the writes with descriptions that are not older than `oldest`, or as fresh as need be.
    async fn bind(&mut self, batch: &mut Batch<'_>, oldest: Option<Duration>) -> Result<(), Break> {
        let mut tables: Tables<'_> = HashMap::new();
        for name in batch.tables() {
            let young =
                |table: &Arc<Table>| oldest.is_none_or(|most| table.read_at.elapsed() < most);
            let known = self.catalog.fresh(name).filter(young);
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

    /// Makes what the rows that do not fit ask for; says whether anything was tried.
    async fn grow(&mut self, batch: &mut Batch<'_>) -> Result<bool, Break> {
        let demands = demands::of(batch, &self.catalog);
        let mut grown = false;
        for (name, demand) in &demands {
            grown = true;
            match create::grow(&mut self.session, name, demand, self.extends).await {
                Ok(()) => {}
                Err(Trouble::Lost(why)) => return Err(Break::Lost(why)),
                Err(Trouble::Refused(refusal)) => {
                    let verdict = self.refusal_of_table(refusal.fault);
                    demands::conclude(batch, name, &verdict);
                }
            }
        }
        Ok(grown)
    }

    fn refusal_of_table(&self, fault: Fault) -> Verdict<RowDone> {
        match fault.retry() {
            Retry::AfterLock => self.waits(fault),
            _ if fault.may_retry() => Verdict::RolledBack(fault),
            _ => Verdict::Final(Err(fault.into())),
        }
    }
}
