//! The way of a batch on a connection: what is not known is read, what is missing is made, and the
//! writes are sent step by step.

use std::collections::HashMap;

use async_trait::async_trait;
use windrow_core::{Executor, Report, RowDone, RowWrite, TableName, Unit};
use windrow_database::web::{Batch, BoundWrite};

use super::bind::{BoundBatch, bind};
use super::connection::{Connection, Stop};
use super::knowledge::Knowledge;

impl Connection {
    async fn drive(&mut self, batch: &mut Batch<'_>) -> Result<(), Stop> {
        let mut knowledge = Knowledge {
            tables: HashMap::new(),
            not_grown: HashMap::new(),
            statements: std::mem::take(&mut self.statements),
        };
        let driven = self.run(batch, &mut knowledge).await;
        self.statements = knowledge.statements;
        driven
    }

    async fn run(&mut self, batch: &mut Batch<'_>, knowledge: &mut Knowledge) -> Result<(), Stop> {
        self.learn(batch, knowledge).await?;
        if self.creates {
            self.grow(batch, knowledge).await?;
        }
        let BoundBatch { statements, writes } = bind(batch, knowledge, self.creates);
        for (group, items) in BoundWrite::steps(batch, &writes) {
            let items = batch.not_held(items);
            if items.is_empty() {
                continue;
            }
            let Some(statement) = statements.get(group as usize / 2) else {
                continue;
            };
            let alone = !group.is_multiple_of(2);
            if statement.reads {
                self.read(batch, statement, &items).await?;
            } else {
                self.write(batch, statement, items, alone).await?;
            }
        }
        Ok(())
    }

    /// Reads the tables that are not known.
    async fn learn(
        &mut self,
        batch: &mut Batch<'_>,
        knowledge: &mut Knowledge,
    ) -> Result<(), Stop> {
        let mut tables: Vec<&TableName> = Vec::new();
        for (_, write) in batch.pending() {
            if !tables.contains(&&write.shape.table) {
                tables.push(&write.shape.table);
            }
        }
        for name in tables {
            let known = match self.catalog.fresh(name) {
                Some(table) => Ok(Some(table)),
                None => self.look_at(name, &mut batch.tally).await?,
            };
            knowledge.tables.insert(name.clone(), known);
        }
        Ok(())
    }
}

#[async_trait]
impl Executor<RowWrite> for Connection {
    async fn execute(&mut self, units: &[Unit<RowWrite>]) -> Report<RowDone> {
        let mut batch = Batch::new(units, "CrateDB");
        match self.drive(&mut batch).await {
            Ok(()) => batch.report(true),
            Err(Stop(fault)) => {
                batch.retry_rest(&fault);
                batch.report(false)
            }
        }
    }
}
