//! Bulk loads: one statement and one transaction for many rows, on the sink's one writer.
//!
//! Values are bound exactly as single writes bind them. A row that fails takes its portion back, or
//! is left out of it where the portion is sifted: each row is an execution of the statement, which
//! SQLite undoes by itself where it fails. What was not written goes through the lane, which tells
//! each row its own error.
//!
//! | room | what it does |
//! | --- | --- |
//! | this file | the form, and the way to the writer |
//! | `portion` | a portion: one transaction |
//! | `row` | one of its rows |
//! | `marks` | what was loaded before |

mod marks;
mod portion;
mod row;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{
    Bulk, Claim, Fault, FaultClass, LoadColumn, LoadFault, LoadPlan, Loaded, Loader, Mark, Marks,
    Rows, Shape, Sifted, TableName,
};

use self::marks::SqliteMarks;
use self::portion::Manner;
use super::fault::Failure;
use super::writer::{Desk, Lost, Writer};

/// One statement, many rows.
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

    fn sifts(&self) -> bool {
        true
    }

    async fn columns(&self, table: &TableName) -> Result<Option<Vec<LoadColumn>>, Fault> {
        let table = table.clone();
        ask(&self.writer, move |desk| portion::columns(desk, &table)).await
    }

    async fn loader(&self, plan: &LoadPlan) -> Result<Box<dyn Loader>, Fault> {
        let shape = Arc::new(plan.shape());
        let checked = shape.clone();
        ask(&self.writer, move |desk| portion::check(desk, &checked)).await?;
        Ok(Box::new(SqliteLoader {
            writer: self.writer.clone(),
            shape,
        }))
    }

    fn marks(&self) -> Option<Arc<dyn Marks>> {
        Some(Arc::new(SqliteMarks::new(&self.writer)))
    }
}

/// Has the writer do something.
async fn ask<T: Send + 'static>(
    writer: &Writer,
    work: impl FnOnce(&mut Desk) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    match writer.ask(work).await {
        Ok(answer) => answer,
        Err(Lost::NotBegun | Lost::HalfWay) => Err(Fault::unavailable("SQLite's writer broke off")),
    }
}

/// A failure that is nobody's row: what is only busy may be tried again.
fn plain(error: rusqlite::Error) -> Fault {
    Failure::from(error).fault
}

/// A way to the writer.
#[derive(Debug)]
struct SqliteLoader {
    writer: Arc<Writer>,
    shape: Arc<Shape>,
}

impl SqliteLoader {
    /// Has the writer write a portion, whose memory both share.
    async fn write(
        &mut self,
        rows: &Rows,
        write: impl FnOnce(&mut Desk, &Arc<Shape>, &Rows) -> Result<Sifted, LoadFault> + Send + 'static,
    ) -> Result<Sifted, LoadFault> {
        let (shape, rows) = (self.shape.clone(), rows.clone());
        let asked = self.writer.ask(move |desk| write(desk, &shape, &rows));
        match asked.await {
            Ok(sifted) => sifted,
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

#[async_trait]
impl Loader for SqliteLoader {
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        let mark = mark.cloned();
        let write = move |desk: &mut Desk, shape: &Arc<Shape>, rows: &Rows| {
            portion::load(desk, shape, rows, Manner::Whole(mark.as_ref()))
        };
        self.write(rows, write).await.map(|sifted| sifted.loaded)
    }

    async fn sift(&mut self, rows: &Rows, claim: Option<&Claim<'_>>) -> Result<Sifted, LoadFault> {
        let owned = claim.map(|claim| (claim.mark.clone(), claim.records.to_vec()));
        let write = move |desk: &mut Desk, shape: &Arc<Shape>, rows: &Rows| {
            let claim = owned
                .as_ref()
                .map(|(mark, records)| Claim { mark, records });
            portion::load(desk, shape, rows, Manner::Sift(claim))
        };
        self.write(rows, write).await
    }
}

fn unsupported(why: &str) -> Fault {
    Fault::new(FaultClass::Unsupported, "0A000", why)
}
