//! The database's own bulk load: `psql \copy` from a CSV file.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rusqlite::{Connection, params};

use crate::reading::{AT, NOTE, Reading};

/// Loads a CSV file without a header into `readings`; says how long the whole `psql` took.
///
/// # Errors
/// psql is missing, or a row is refused.
pub fn psql(url: &str, file: &Path) -> Result<Duration> {
    let start = Instant::now();
    let output = Command::new(windrow_testkit::postgres::psql_program())
        .args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", url, "-c"])
        .arg(format!(r"\copy readings from '{}' csv", file.display()))
        .output()
        .context("cannot run psql")?;
    if !output.status.success() {
        bail!("psql: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(start.elapsed())
}

/// Writes `rows` readings to SQLite in one transaction with one prepared statement; says how long
/// it took.
///
/// # Errors
/// The file cannot be written.
pub fn sqlite(file: &Path, rows: u64) -> Result<Duration> {
    let start = Instant::now();
    let mut db = Connection::open(file)?;
    db.pragma_update(None, "synchronous", "full")?;
    let transaction = db.transaction()?;
    {
        let mut insert = transaction.prepare("insert into readings values (?, ?, ?, ?, ?)")?;
        for row in (0..rows).map(Reading::new) {
            insert.execute(params![
                i64::try_from(row.id())?,
                i64::try_from(row.device())?,
                AT,
                row.temperature(),
                NOTE
            ])?;
        }
    }
    transaction.commit()?;
    Ok(start.elapsed())
}
