//! Commits several transactions and waits for the disk once.
//!
//! Each isolated unit is a transaction of its own, and no unit is answered before the batch ends.
//! So the commits of such a batch do not wait for the disk one by one: the write-ahead log is
//! synced once, after the last commit. SQLite checks the log's frames in their order, so a loss of
//! power leaves whole transactions, from the first on.

use std::ffi::OsString;
use std::fs::File;

use rusqlite::Connection;

use crate::fault::{Failure, Scope};

/// The number of FULL in `PRAGMA synchronous`.
const FULL: i64 = 2;

/// A connection whose commits do not wait for the disk.
#[derive(Debug)]
pub(crate) struct DeferredSync {
    log: OsString,
}

impl DeferredSync {
    /// Begins between two transactions. Returns `None` if the database has no write-ahead log, or
    /// does not wait for the disk anyway.
    pub(crate) fn begin(connection: &Connection) -> Option<Self> {
        let ask = |sql: &str| connection.prepare_cached(sql);
        let journal: String = ask("PRAGMA journal_mode")
            .and_then(|mut ask| ask.query_row([], |row| row.get(0)))
            .ok()?;
        let level: i64 = ask("PRAGMA synchronous")
            .and_then(|mut ask| ask.query_row([], |row| row.get(0)))
            .ok()?;
        if journal != "wal" || level != FULL {
            return None;
        }
        let mut log = OsString::from(connection.path()?);
        log.push("-wal");
        relax(connection).ok()?;
        Some(Self { log })
    }

    /// Waits until all that was committed is on disk; commits wait again from now on.
    ///
    /// # Errors
    /// An unknown part is on disk, and the connection must not be used any more.
    pub(crate) fn end(self, connection: &Connection) -> Result<(), Failure> {
        connection.execute_batch("PRAGMA synchronous = FULL")?;
        // This handle holds no lock, so closing it releases none.
        let synced = File::options().write(true).open(&self.log);
        synced.and_then(|log| log.sync_all()).map_err(|error| {
            let message = format!("the write-ahead log could not be synced: {error}");
            Failure {
                fault: windrow_core::Fault::unknown(message),
                scope: Scope::Sync,
            }
        })
    }
}

/// Makes the commits of a connection return without waiting for the disk.
pub(crate) fn relax(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA synchronous = NORMAL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_wait_again_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("test.db")).unwrap();
        let level = || -> i64 {
            let sql = "PRAGMA synchronous";
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        assert!(
            DeferredSync::begin(&connection).is_none(),
            "no log is written ahead"
        );
        connection
            .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
            .unwrap();
        let deferred = DeferredSync::begin(&connection).unwrap();
        assert_eq!(level(), 1);
        connection.execute_batch("CREATE TABLE t (a)").unwrap();
        deferred.end(&connection).unwrap();
        assert_eq!(level(), FULL);
        relax(&connection).unwrap();
        assert!(DeferredSync::begin(&connection).is_none(), "it was set so");
    }
}
