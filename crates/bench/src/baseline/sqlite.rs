//! A program that writes each row to SQLite in a transaction of its own, as durably as Windrow does
//! by default.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::{Connection, params};

use crate::reading::{AT, NOTE, Reading};

/// Rows that were written, and how long that took.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Time.
    pub elapsed: Duration,
}

/// Writes one row a transaction for a time (WAL, `synchronous=FULL`, one prepared statement).
///
/// # Errors
/// The file cannot be written.
pub fn run(file: &Path, time: Duration) -> Result<Written> {
    let db = Connection::open(file)?;
    db.pragma_update(None, "synchronous", "full")?;
    let mut insert = db.prepare("insert into readings values (?, ?, ?, ?, ?)")?;
    let start = Instant::now();
    let mut rows = 0;
    while start.elapsed() < time {
        let row = Reading::new(rows);
        insert.execute(params![
            i64::try_from(row.id())?,
            i64::try_from(row.device())?,
            AT,
            row.temperature(),
            NOTE
        ])?;
        rows += 1;
    }
    Ok(Written {
        rows,
        elapsed: start.elapsed(),
    })
}
