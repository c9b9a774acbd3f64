//! Statements without values, and what takes a transaction back.

use rusqlite::Connection;

/// Executes a statement without parameters and results.
pub(super) fn say(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.raw_execute().map(|_| ())
}

/// False where the transaction is still there, so that the connection is of no use any more.
pub(super) fn roll_back(connection: &Connection) -> bool {
    if !connection.is_autocommit() {
        // What counts is whether the transaction is gone.
        drop(say(connection, "ROLLBACK"));
    }
    connection.is_autocommit()
}
