//! Several commits and one wait for the disk.
//!
//! Each unit that goes apart is a transaction of its own, and nobody is told of one before the
//! batch is done. So the commits of such a batch do not wait for the disk one by one: the
//! write-ahead log is synced once, behind the last of them. Its frames are checked in their order,
//! so what a loss of power leaves of it is whole transactions from the front.

use std::ffi::OsString;
use std::fs::File;

use rusqlite::Connection;

use crate::fault::{Failure, Scope};

/// What `PRAGMA synchronous` calls FULL.
const FULL: i64 = 2;

/// A connection whose commits do not wait for the disk.
#[derive(Debug)]
pub(crate) struct DeferredSync {
    log: OsString,
}

impl DeferredSync {
    /// To be called between transactions. `None` where nothing changes: a database that does not
    /// write ahead, or does not wait for the disk anyway.
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
    /// It cannot be known what is on disk, and the connection must not be used any more.
    pub(crate) fn end(self, connection: &Connection) -> Result<(), Failure> {
        connection.execute_batch("PRAGMA synchronous = FULL")?;
        // Nothing is locked through this handle, so closing it gives no lock away.
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

/// Lets the commits of a connection go on without waiting.
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
