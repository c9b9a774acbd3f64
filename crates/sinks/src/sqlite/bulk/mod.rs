//! Bulk loads: one statement and one transaction for many rows, on the sink's one writer.
//!
//! Values are bound exactly as single writes bind them. A row that fails takes its portion back; its rows go through the
//! lane then, which tells each its own error.
//!
//! | room | what it does |
//! | --- | --- |
//! | this file | the form, and the way to the writer |
//! | `portion` | a portion: one transaction |
//! | `marks` | what was loaded before |

mod marks;
mod portion;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::shape::ShapeParts;
use windrow_core::{
    Bulk, Fault, FaultClass, LoadFault, LoadPlan, Loaded, Loader, Mark, Marks, Name, Op, Returning,
    Rows, Shape, TableName,
};

use self::marks::SqliteMarks;
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

    async fn columns(&self, table: &TableName) -> Result<Option<Vec<Name>>, Fault> {
        let table = table.clone();
        ask(&self.writer, move |desk| portion::columns(desk, &table)).await
    }

    async fn loader(&self, plan: &LoadPlan) -> Result<Box<dyn Loader>, Fault> {
        let shape = Arc::new(Shape::new(ShapeParts {
            op: Op::Insert,
            table: plan.table.clone(),
            columns: plan.columns.clone(),
            key: plan.key.clone(),
            on_conflict: plan.on_conflict,
            returning: Returning::Nothing,
        }));
        let checked = shape.clone();
        ask(&self.writer, move |desk| portion::check(desk, &checked)).await?;
        Ok(Box::new(SqliteLoader {
            writer: self.writer.clone(),
            shape,
            spare: Rows::default(),
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
    /// The rows that the writer had last, for their memory.
    spare: Rows,
}

#[async_trait]
impl Loader for SqliteLoader {
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        let mut copy = std::mem::take(&mut self.spare);
        copy.clone_from(rows);
        let (shape, mark) = (self.shape.clone(), mark.cloned());
        let asked = self.writer.ask(move |desk| {
            let loaded = portion::load(desk, &shape, &copy, mark.as_ref());
            (loaded, copy)
        });
        match asked.await {
            Ok((loaded, copy)) => {
                self.spare = copy;
                loaded
            }
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

fn unsupported(why: &str) -> Fault {
    Fault::new(FaultClass::Unsupported, "0A000", why)
}
