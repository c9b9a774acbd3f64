//! Opening the file, and the PRAGMAs that every connection gets.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};
use windrow_core::{Fault, FaultClass};
use windrow_database::{Options, Synchronous};

use super::fault::{Failure, Scope};
use super::location::Location;

/// Prepared statements that are kept between batches.
const STATEMENTS: usize = 256;

/// Page cache in KiB. Bounded, because it is not part of the memory budget.
const CACHE_KIB: i64 = 16 * 1024;

/// Pages of the write-ahead log after which it is brought into the file, which waits for the disk
/// twice. With SQLite's default of 1,000 each tenth batch of 64 clients does so: on a disk that
/// takes four milliseconds to sync, an eighth fewer rows were written.
const LOG_PAGES: i64 = 4000;

/// Bytes to which the write-ahead log is cut back after it has been checkpointed.
const WAL_BYTES: i64 = 64 << 20;

/// How long another process that writes is waited for at least: it holds the whole file, and nobody
/// waits for it alone.
const BUSY: Duration = Duration::from_millis(500);

/// Where connections to the same database are opened.
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
/// [`FaultClass::Unavailable`] where another process holds it, [`FaultClass::Invalid`] where the
/// path makes no sense, [`FaultClass::Denied`] where it cannot be written, SQLite's own error
/// otherwise.
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

/// Makes an empty file that its owner alone may read and write, if there is none. SQLite gives the
/// files beside it (`-wal`, `-shm`) the same rights. What fails here, SQLite says in its own words.
fn make_private(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}

fn prepare(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    connection.busy_timeout(options.lock_wait.max(BUSY))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // A database that comes from elsewhere must not reach beyond itself through its views and
    // triggers.
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
        // Its directory is there, as was looked at before.
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

/// The log beside the file has to be written too, so that its directory counts as well.
fn read_only(location: &Location, what: &str) -> Fault {
    let message = format!(
        "{location} cannot be written: {what}; let this user write the file and its directory, or name another place"
    );
    Fault::new(FaultClass::Denied, "25006", message)
}
