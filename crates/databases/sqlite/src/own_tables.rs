//! The tables that Windrow keeps for itself: made where they are not there yet, and brought up to
//! date where an older program has made them.

use rusqlite::{Connection, TransactionBehavior};
use windrow_core::bookkeeping::{IDEMPOTENCY, PROGRESS, REJECTED};

use crate::fault::Failure;

/// Moments are UTC, in the form that the gateway gives them.
pub(crate) const NOW: &str = "(strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))";

/// Makes the table of dead letters, or gives one of an older program, which called the moment
/// otherwise and had no entries, what it lacks.
pub(crate) fn make_dead_letters(connection: &Connection) -> Result<(), Failure> {
    if missing(&columns(connection, REJECTED)?).is_empty() {
        return Ok(());
    }
    // Others may do the same at the same time: whoever comes second finds nothing to do.
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    for sql in missing(&columns(&transaction, REJECTED)?) {
        transaction.execute_batch(&sql)?;
    }
    Ok(transaction.commit()?)
}

/// Makes the table of how far spools have been applied.
pub(crate) fn make_positions(connection: &Connection) -> Result<(), Failure> {
    Ok(connection.execute_batch(&format!(
        r#"CREATE TABLE IF NOT EXISTS main.{PROGRESS} (spool TEXT NOT NULL, "partition" INTEGER NOT NULL,
            "position" INTEGER NOT NULL, last_entry TEXT NOT NULL DEFAULT '', PRIMARY KEY (spool, "partition"), UNIQUE (spool, "partition", "position"))"#
    ))?)
}

/// Makes the table of requests that were executed under a key.
pub(crate) fn make_keys(connection: &Connection) -> Result<(), Failure> {
    Ok(connection.execute_batch(&format!(
        r#"CREATE TABLE IF NOT EXISTS main.{IDEMPOTENCY} (idempotency_key TEXT NOT NULL, part INTEGER NOT NULL,
            request TEXT NOT NULL, outcome BLOB, made_at TEXT NOT NULL DEFAULT {NOW}, PRIMARY KEY (idempotency_key, part));
        CREATE INDEX IF NOT EXISTS main.{IDEMPOTENCY}_made_at ON {IDEMPOTENCY} (made_at)"#
    ))?)
}

/// The columns of a table; none where there is no such table.
pub(crate) fn columns(connection: &Connection, table: &str) -> Result<Vec<String>, Failure> {
    let mut ask = connection.prepare("SELECT name FROM pragma_table_info(?1, 'main')")?;
    let names = ask.query_map([table], |row| row.get(0))?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

/// The statements that a table with these columns lacks.
fn missing(columns: &[String]) -> Vec<String> {
    let has = |name: &str| columns.iter().any(|column| column == name);
    if columns.is_empty() {
        return vec![create_dead_letters()];
    }
    let mut missing = Vec::new();
    if !has("rejected_at") {
        missing.push(format!(
            "ALTER TABLE main.{REJECTED} RENAME COLUMN moved_at TO rejected_at"
        ));
    }
    if !has("entry") {
        missing.push(format!("ALTER TABLE main.{REJECTED} ADD COLUMN entry BLOB"));
    }
    missing
}

fn create_dead_letters() -> String {
    format!(
        r#"CREATE TABLE main.{REJECTED} (id INTEGER PRIMARY KEY AUTOINCREMENT,
            rejected_at TEXT NOT NULL DEFAULT {NOW}, source TEXT NOT NULL, destination TEXT NOT NULL,
            "key" JSON NOT NULL, "row" JSON NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, "constraint" TEXT,
            entry BLOB)"#
    )
}
