//! The marks of loads: the rows of a file that are in the database.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use windrow_core::bookkeeping::{OwnAnswer, OwnSession, OwnStatement, OwnTable};
use windrow_core::{Bookkeeping, Fault, Mark, Marks, Span};

use crate::plain::quoted;
use crate::tables::create_all;

/// The marks that a database keeps in a table of Windrow's own.
pub struct TableOfMarks {
    tables: Arc<dyn Bookkeeping>,
    /// The session of the previous statement, because marks are merged again and again.
    spare: Mutex<Option<Box<dyn OwnSession>>>,
}

impl TableOfMarks {
    /// Returns the marks of the database with these tables.
    pub fn new(tables: Arc<dyn Bookkeeping>) -> Self {
        Self {
            tables,
            spare: Mutex::default(),
        }
    }

    async fn run(&self, statement: OwnStatement<'_>) -> Result<OwnAnswer, Fault> {
        let mut spare = self.spare.lock().take();
        let mut session = match spare.take_if(|session| session.is_alive()) {
            Some(session) => session,
            None => self.tables.open().await?,
        };
        let answer = session.run(statement).await;
        let unused = match answer.is_ok() && session.is_alive() {
            true => self.spare.lock().replace(session),
            false => Some(session),
        };
        if let Some(session) = unused {
            session.close().await;
        }
        answer
    }
}

#[async_trait]
impl Marks for TableOfMarks {
    async fn prepare(&self) -> Result<(), Fault> {
        create_all(&*self.tables, &[OwnTable::Loads]).await
    }

    async fn read(&self, load: &str) -> Result<Vec<Span>, Fault> {
        let answer = self.run(OwnStatement::ReadMarks { load }).await?;
        let spans = answer.rows.iter().map(|row| span(row));
        spans.collect::<Option<_>>().ok_or_else(|| {
            Fault::invalid(format!(
                "table {} holds a row that is no mark of a load; was it made by something else?",
                Mark::TABLE
            ))
        })
    }

    async fn merge(&self, mark: &Mark) -> Result<(), Fault> {
        self.run(OwnStatement::MergeMarks(mark)).await.map(drop)
    }

    async fn forget(&self, load: &str) -> Result<(), Fault> {
        let (table, of, load) = (Mark::TABLE, Mark::LOAD, quoted(load)?);
        // A name after a dot is never a keyword, in any database.
        let sql = format!("DELETE FROM {table} WHERE {table}.{of} = {load}");
        self.run(OwnStatement::Plain(&sql)).await.map(drop)
    }
}

/// Returns the span of a row of the table.
fn span(row: &[Option<Box<[u8]>>]) -> Option<Span> {
    let number = |place: usize| {
        let digits = row.get(place)?.as_deref()?;
        str::from_utf8(digits).ok()?.parse().ok()
    };
    Some(Span {
        first: number(0)?,
        end: number(1)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_no_mark_is_noticed() {
        let row = |cells: &[&str]| -> Vec<Option<Box<[u8]>>> {
            let cells = cells.iter().map(|cell| Some(cell.as_bytes().into()));
            cells.collect()
        };
        let read = Span { first: 3, end: 20 };
        assert_eq!(span(&row(&["3", "20"])), Some(read));
        assert_eq!(span(&row(&["3", "x"])), None);
        assert_eq!(span(&row(&["3"])), None);
        assert_eq!(span(&[None, None]), None);
    }
}
