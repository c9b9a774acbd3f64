//! Bulk loads: one statement and one transaction for many rows, on the sink's only writer.
//!
//! Values are bound exactly as single writes bind them. A row that fails undoes its portion. If the
//! portion is filtered, the row is left out instead: each row is an execution of the statement,
//! which SQLite itself undoes if it fails. The rows that are left out are written by the lane, and
//! each gets its own error.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | the port, which sends jobs to the writer |
//! | `portion` | writes a portion in one transaction |
//! | `row` | writes one row of a portion |
//! | `make` | creates the table for a load |
//! | `marks` | writes the marks of a portion |
//! | `transaction` | executes statements without values, and rolls back |
//! | `fault` | classifies failures |

mod fault;
mod make;
mod marks;
mod portion;
mod row;
mod transaction;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_bookkeeping::TableOfMarks;
use windrow_core::{
    Bulk, Claim, Contents, Fault, Filtered, Holds, LoadColumn, LoadFault, LoadPlan, Loader, Marks,
    Rows, Shape, TableName,
};

use super::executor::writer::{Database, Lost, Writer};
use super::own_tables::SqliteBookkeeping;

/// Bulk loads by one statement for many rows.
pub(super) struct SqliteBulk {
    writer: Arc<Writer>,
}

impl SqliteBulk {
    pub(super) fn new(writer: &Arc<Writer>) -> Self {
        Self {
            writer: writer.clone(),
        }
    }
}

#[async_trait]
impl Bulk for SqliteBulk {
    fn form(&self) -> &'static str {
        "one statement, many rows in a transaction"
    }

    fn most_loaders(&self) -> usize {
        1
    }

    fn portion_rows(&self) -> usize {
        50_000
    }

    async fn columns(&self, table: &TableName) -> Result<Option<Vec<LoadColumn>>, Fault> {
        let table = table.clone();
        self.writer
            .run(move |database| portion::columns(database, &table))
            .await
    }

    async fn make(
        &self,
        plan: &LoadPlan,
        rows: &Rows,
        declared: &[Option<Holds>],
    ) -> Result<bool, Fault> {
        let wanted = make::Wanted::of(plan, rows, declared);
        let plan = plan.clone();
        self.writer
            .run(move |database| make::make(database, &plan, &wanted))
            .await
    }

    async fn loader(&self, plan: &LoadPlan) -> Result<Box<dyn Loader>, Fault> {
        let shape = Arc::new(plan.shape());
        let checked = shape.clone();
        self.writer
            .run(move |database| portion::check(database, &checked))
            .await?;
        Ok(Box::new(SqliteLoader {
            writer: self.writer.clone(),
            shape,
        }))
    }

    fn marks(&self) -> Option<Arc<dyn Marks>> {
        let writer = self.writer.clone();
        let tables = SqliteBookkeeping { writer };
        Some(Arc::new(TableOfMarks::new(Arc::new(tables))))
    }
}

/// A handle that sends portions to the writer.
#[derive(Debug)]
struct SqliteLoader {
    writer: Arc<Writer>,
    shape: Arc<Shape>,
}

#[async_trait]
impl Loader for SqliteLoader {
    async fn write(
        &mut self,
        contents: Contents<'_>,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        let rows = contents.rows().map_err(LoadFault::Refused)?.clone();
        let leaves_out = contents.leaves_out();
        let shape = self.shape.clone();
        let claim = claim.map(|claim| (claim.mark.clone(), claim.records.to_vec()));
        let write = move |database: &mut Database| {
            let claim = claim
                .as_ref()
                .map(|(mark, records)| Claim { mark, records });
            portion::write(database, &shape, &rows, leaves_out, claim.as_ref())
        };
        match self.writer.ask(write).await {
            Ok(filtered) => filtered,
            Err(Lost::NotBegun) => {
                let fault = Fault::unavailable("SQLite's writer has ended");
                Err(LoadFault::Again(fault))
            }
            Err(Lost::HalfWay) => Err(LoadFault::Unknown(Fault::unknown(
                "SQLite's writer broke off; it cannot be known whether this was written",
            ))),
        }
    }
}
