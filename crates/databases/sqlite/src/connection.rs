//! Opens the file, and sets the PRAGMAs of a connection.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};
use windrow_core::{Fault, FaultClass};
use windrow_database::{Options, Synchronous};

use super::fault::{Failure, Scope};
use super::location::Location;

/// The largest number of prepared statements that a connection keeps.
const MAX_STATEMENTS: usize = 256;

/// Page cache in KiB. Bounded, because it is not part of the memory budget.
const CACHE_KIB: i64 = 16 * 1024;

/// Pages of the write-ahead log after which a checkpoint follows, which waits for the disk twice.
/// With SQLite's default of 1,000 each tenth batch of 64 clients does so. On a disk that takes four
/// milliseconds to sync, an eighth fewer rows were written.
const LOG_PAGES: i64 = 4000;

/// Bytes to which the write-ahead log is truncated after a checkpoint.
const WAL_BYTES: i64 = 64 << 20;

/// The shortest timeout for the lock of another process. It blocks all writers of the file.
const MIN_LOCK_WAIT: Duration = Duration::from_millis(500);

/// Opens more connections to the same database.
#[derive(Debug)]
pub(super) struct Opener {
    pub(super) location: Location,
    pub(super) options: Options,
}

impl Opener {
    /// Opens another connection.
    pub(super) fn open(&self) -> Result<Connection, Fault> {
        open(&self.location, &self.options)
    }
}

/// Opens the database.
///
/// # Errors
/// [`FaultClass::Unavailable`] if another process has locked the file, [`FaultClass::Invalid`] if
/// the path is wrong, [`FaultClass::Denied`] if the file cannot be written, else SQLite's own
/// error.
pub(super) fn open(location: &Location, options: &Options) -> Result<Connection, Fault> {
    location.check()?;
    let opened = match location {
        Location::Memory => Connection::open_in_memory(),
        Location::File { path, create } => {
            if *create {
                make_private(path);
            }
            let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            flags.set(OpenFlags::SQLITE_OPEN_CREATE, *create);
            Connection::open_with_flags(path, flags)
        }
    };
    let connection = opened.map_err(|e| explain(location, e))?;
    if connection
        .is_readonly(MAIN_DB)
        .map_err(|e| explain(location, e))?
    {
        return Err(read_only(location, "it may only be read"));
    }
    prepare(&connection, options).map_err(|e| explain(location, e))?;
    Ok(connection)
}

/// Creates an empty file that only its owner may read and write, if it is missing. SQLite gives the
/// files `-wal` and `-shm` the same permissions. SQLite reports any error later.
fn make_private(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}

fn prepare(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    connection.busy_timeout(options.lock_wait.max(MIN_LOCK_WAIT))?;
    connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
    // Views and triggers of a database from elsewhere must not call functions with side effects.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    let journal: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if journal != "wal" && journal != "memory" {
        tracing::warn!(
            journal,
            "SQLite does not write ahead here; commits are slower"
        );
    }
    connection.query_row(
        &format!("PRAGMA journal_size_limit = {WAL_BYTES}"),
        [],
        |_| Ok(()),
    )?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
        Synchronous::Off => "OFF",
    };
    connection.pragma_update(None, "synchronous", synchronous)
}

fn explain(location: &Location, error: rusqlite::Error) -> Fault {
    match error.sqlite_error_code() {
        // The directory exists, as was checked before.
        Some(ErrorCode::CannotOpen) => {
            return read_only(location, "it can neither be opened nor created");
        }
        Some(ErrorCode::ReadOnly) => {
            return read_only(location, "no log can be made in its directory");
        }
        _ => {}
    }
    let Failure { fault, scope } = Failure::from(error);
    let class = match scope {
        Scope::Busy => FaultClass::Unavailable,
        _ => fault.class,
    };
    let message = format!("{location} cannot be opened: {}", fault.message);
    Fault::new(class, fault.code, message)
}

/// Returns the fault of a file that cannot be written. SQLite writes its log to the same directory.
fn read_only(location: &Location, what: &str) -> Fault {
    let message = format!(
        "{location} cannot be written: {what}; let this user write the file and its directory, or name another place"
    );
    Fault::new(FaultClass::Denied, "25006", message)
}
