//! Writes and calls joined with what is known of their tables.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::{Call, Fault, Shape, TableName, Tally, Unit};

use crate::calls::renew;
use crate::catalog::schema;
use crate::catalog::table::Table;
use crate::compiled;
use crate::ladder::batch::{Asked, Batch};
use crate::ladder::connection::Connection;
use crate::ladder::form::{Compiled, Form};
use crate::ladder::prepared::StatementKey;
use windrow_pgwire::wire::Broken;

/// The most shapes that a connection keeps compiled.
const MOST_SHAPES: usize = 1024;

/// Descriptions of the tables of a batch.
type Tables<'a> = HashMap<&'a TableName, Option<Arc<Table>>>;

impl Connection {
    /// Tables are not as they were described: all statements on them are to be described anew.
    pub(super) fn retire(&self, batch: &Batch<'_>, versions: &[u64]) {
        for compiled in &batch.shapes {
            if let Some(bound) = compiled.bound_call()
                && versions.contains(&compiled.table.version)
            {
                bound.statement().retire();
                self.shared.call_catalog.retire(&compiled.table);
            }
        }
    }

    /// Tables are as they were described, but a further change might not be seen: they are
    /// described anew before the next use.
    pub(super) fn outdate(&self, batch: &Batch<'_>, versions: &[u64]) {
        if versions.is_empty() {
            return;
        }
        self.retire(batch, versions);
        for compiled in &batch.shapes {
            if compiled.bound_call().is_none() && versions.contains(&compiled.table.version) {
                self.shared.catalog.forget(compiled.table.version);
            }
        }
    }

    /// Describes the statements of calls under way anew whose tables have changed.
    async fn renew(&mut self, batch: &mut Batch<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let retired = |call: &&Call| call.statement.is_retired();
        let calls = || batch.units.iter().flat_map(Unit::calls).filter(retired);
        if calls().next().is_none() {
            return Ok(());
        }
        let call_catalog = &self.shared.call_catalog;
        let unknown: Vec<&Call> = calls().filter(|call| call_catalog.lacks(call)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        tally.round_trips += 1;
        if let Err(fault) =
            renew(&mut self.wire, call_catalog, &self.shared.trusted, &unknown).await?
        {
            let verdict = self.refused(fault);
            batch.conclude_retired(&verdict);
        }
        Ok(())
    }

    /// Joins the writes with their tables' descriptions. Where the server refuses to give one, its
    /// writes are told why.
    pub(super) async fn place(
        &mut self,
        batch: &mut Batch<'_>,
        anew: bool,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        self.renew(batch, tally).await?;
        let mut tables = Tables::new();
        for name in batch.tables() {
            let known = self.shared.catalog.fresh(name).filter(|_| !anew);
            let table = match known {
                Some(table) => Some(table),
                None => {
                    tally.round_trips += 1;
                    match self.read(name).await? {
                        Ok(table) => table,
                        Err(fault) => {
                            batch.conclude_table(name, &self.refused(fault));
                            None
                        }
                    }
                }
            };
            tables.insert(name, table);
        }
        batch.place(&mut |item| match item {
            Asked::Write(write) => {
                let table = tables.get(&write.shape.table)?.as_ref()?;
                Some(self.compile(&write.shape, table))
            }
            Asked::Call(call) => self.calls.compile(&self.shared.call_catalog, call),
        });
        if self.has_old_plans(batch) {
            tally.round_trips += 1;
            drop(self.wire.simple("DISCARD PLANS").await?);
        }
        Ok(())
    }

    /// Whether triggers of these tables may have been planned here for columns of other types: the
    /// server keeps such plans of PL/pgSQL, and would refuse writes of clients who have never
    /// run them.
    fn has_old_plans(&mut self, batch: &Batch<'_>) -> bool {
        let prints = batch.shapes.iter().filter_map(|c| c.table.print.as_ref());
        let mut old = false;
        for print in prints.filter(|p| !p.relied.functions.is_empty()) {
            let Some(oid) = print.oid() else { continue };
            match self.planned.get(&oid) {
                Some(known) if *known == print.columns => {}
                known => {
                    old |= known.is_some();
                    self.planned.insert(oid, print.columns.clone());
                }
            }
        }
        old
    }

    async fn read(
        &mut self,
        name: &TableName,
    ) -> Result<Result<Option<Arc<Table>>, Fault>, Broken> {
        let before = self.shared.catalog.get(name).map(|table| table.version);
        let facts = match schema::read(&mut self.wire, name, self.dialect).await? {
            Ok(facts) => facts,
            Err(error) => return Ok(Err(error.into())),
        };
        let table = self.shared.catalog.put(name, facts);
        let after = table.as_ref().map(|table| table.version);
        if let Some(before) = before.filter(|before| Some(*before) != after) {
            self.prepared
                .forget(|key| key == StatementKey::Guard(before));
        }
        Ok(Ok(table))
    }

    fn compile(&mut self, shape: &Arc<Shape>, table: &Arc<Table>) -> Arc<Compiled> {
        if let Some(known) = self.compiled.get(shape) {
            if known.table.version == table.version {
                return known.clone();
            }
            let old = known.id;
            self.prepared.forget(|key| {
                matches!(key, StatementKey::Single(id) | StatementKey::Fused(id) | StatementKey::Telling(id) if id == old)
            });
        }
        if self.compiled.len() >= MOST_SHAPES {
            self.compiled.clear();
        }
        self.ids += 1;
        let compiled = compiled::Compiled::of_shape(self.ids, shape, table, &self.shared.trusted);
        let compiled = Arc::new(compiled.into_form(Form::Write));
        self.compiled.insert(shape.clone(), compiled.clone());
        compiled
    }
}
