//! Writes the marks of a portion in its transaction.

use rusqlite::{Connection, params};
use windrow_core::{Mark, Span};

/// Writes marks, in the transaction that is open.
pub(super) fn insert(connection: &Connection, load: &str, spans: &[Span]) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO {} ({}, {}, {}) VALUES (?1, ?2, ?3)",
        Mark::TABLE,
        Mark::LOAD,
        Mark::FIRST,
        Mark::END
    );
    let mut insert = connection.prepare_cached(&sql)?;
    for span in spans {
        insert.execute(params![load, number(span.first), number(span.end)])?;
    }
    Ok(())
}

fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
