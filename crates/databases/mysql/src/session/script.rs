//! Executes texts of several statements, and queries with limited results.

use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Error, Params, Row, Statement, Value as Cell};
use tokio::time::Instant;

use super::Session;
use crate::fault::Trouble;

/// The rows of a result.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) columns: Arc<[Column]>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Session {
    /// Executes a text of several statements that return no rows, up to the first that fails.
    /// Returns the numbers of rows that the statements before it wrote or deleted.
    pub(crate) async fn script(&mut self, sql: &str) -> (Vec<u64>, Result<(), Trouble>) {
        let start = Instant::now();
        self.round_trips += 1;
        let mut counts = Vec::new();
        let ended = counted(&mut self.conn, sql, &mut counts).await;
        self.in_database += start.elapsed();
        (counts, ended.map_err(|error| self.trouble(error)))
    }

    /// Executes a prepared statement and keeps its first rows, up to a number of bytes. It reads
    /// and drops the other rows. The first row is kept with any size.
    pub(crate) async fn fetch(
        &mut self,
        sql: &str,
        cells: Vec<Cell>,
        most_bytes: usize,
    ) -> Result<Fetched, Trouble> {
        let statement = self.prepare(sql, cells.len()).await?;
        let start = Instant::now();
        self.round_trips += 1;
        let fetched = bounded(&mut self.conn, statement, cells, most_bytes).await;
        self.in_database += start.elapsed();
        fetched.map_err(|error| self.trouble(error))
    }
}

async fn counted(conn: &mut Conn, sql: &str, counts: &mut Vec<u64>) -> Result<(), Error> {
    let mut result = conn.query_iter(sql).await?;
    while result.columns().is_some() {
        counts.push(result.affected_rows());
        if result.is_empty() {
            break;
        }
        result.for_each(drop).await?;
    }
    result.drop_result().await
}

async fn bounded(
    conn: &mut Conn,
    statement: Statement,
    cells: Vec<Cell>,
    most_bytes: usize,
) -> Result<Fetched, Error> {
    let mut result = conn.exec_iter(statement, Params::Positional(cells)).await?;
    let columns = result.columns().unwrap_or_default();
    let (mut rows, mut bytes) = (Vec::new(), 0_usize);
    let keep = |row: Row| {
        if bytes > most_bytes {
            return;
        }
        let row = row.unwrap();
        bytes = bytes.saturating_add(row.iter().map(size).sum());
        if bytes <= most_bytes || rows.is_empty() {
            rows.push(row);
        }
    };
    result.for_each(keep).await?;
    result.drop_result().await?;
    Ok(Fetched { columns, rows })
}

fn size(cell: &Cell) -> usize {
    size_of::<Cell>()
        + match cell {
            Cell::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
}
