//! Executes a batch: from units to requests, and from answers to verdicts.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | reads unknown tables, and sends the writes of a batch step by step |
//! | `plan` | joins each write with its table and its statement |
//! | `sql` | the statement of a shape |
//! | `send` | sends one write, or many as a bulk |
//! | `lookup` | reads rows by their keys |
//! | `settle` | turns answers into verdicts |
//! | `isolate` | halves a bulk that fails as a whole; finds the errors of rows that failed without one |
//! | `key` | identifies the row of a write |
//! | `grow` | creates tables and columns |
//! | `connection`, `session` | a lane's connection; requests and answers |

pub(crate) mod connection;
mod grow;
mod isolate;
pub(crate) mod key;
mod lookup;
mod plan;
mod send;
pub(crate) mod session;
mod settle;
mod sql;

use std::collections::HashMap;

use async_trait::async_trait;
use windrow_core::{Executor, Report, TableName, Unit};
use windrow_database::plan::shape_of;
use windrow_database::web::{Batch, BoundWrite, Stop};

use self::connection::Connection;
use self::plan::{Knowledge, Plan, plan};

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
            grow::grow(self, batch, knowledge).await?;
        }
        let Plan { statements, writes } = plan(batch, knowledge, self.creates);
        for (group, items) in BoundWrite::steps(batch, &writes) {
            let items = batch.not_held(items);
            if items.is_empty() {
                continue;
            }
            let Some(statement) = statements.get(group as usize / 2) else {
                continue;
            };
            if statement.reads {
                lookup::read(self, batch, statement, &items).await?;
            } else if shape_of(group).is_some() {
                isolate::write(self, batch, statement, &items).await?;
            } else {
                for at in items {
                    let rung = batch.rung_of_one();
                    send::one(self, batch, statement, at, rung).await?;
                }
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
                None => self.read_table(name, &mut batch.tally).await?,
            };
            knowledge.tables.insert(name.clone(), known);
        }
        Ok(())
    }
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut batch = Batch::new(units, "CrateDB");
        let driven = self.drive(&mut batch).await;
        batch.report(driven)
    }
}
