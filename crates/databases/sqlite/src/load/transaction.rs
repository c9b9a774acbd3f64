//! Executes statements without values, and rolls back.

use rusqlite::Connection;

/// Executes a statement without parameters and results.
pub(super) fn say(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.raw_execute().map(|_| ())
}

/// Rolls back. Returns false if the transaction still exists, so that the connection cannot be used
/// any more.
pub(super) fn roll_back(connection: &Connection) -> bool {
    if !connection.is_autocommit() {
        // Only the end of the transaction matters, and not the result.
        drop(say(connection, "ROLLBACK"));
    }
    connection.is_autocommit()
}
