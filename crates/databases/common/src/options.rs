//! The settings of a database.

use std::time::Duration;

use windrow_core::Name;

/// The settings of a database. The defaults need no change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// True if a missing table is created from the first row that names it, and extended by the
    /// columns that later rows have. The type of an existing column never changes.
    pub create_tables: bool,
    /// True if, with `create_tables`, tables that Windrow did not create are extended too.
    pub extend_tables: bool,
    /// With `create_tables`, the column of a new table for the time at which the database got the
    /// row, unless the first rows have a column of that name; `None` for no such column.
    pub received_at: Option<Name>,
    /// The longest wait of a write in a batch for another session's lock. After that the write goes
    /// on by itself, on a connection of its own. PostgreSQL's batches wait for a fifth of this time
    /// if they have recently met locks.
    pub lock_wait: Duration,
    /// The longest time for opening a connection.
    pub connect_timeout: Duration,
    /// For PostgreSQL only: functions, as `schema.name`, that depend only on their arguments or the
    /// row of their trigger and have no lasting effects. Writes that run them are joined, although
    /// nothing is proven about them.
    pub trusted_functions: Vec<String>,
    /// For PostgreSQL only: true if sessions keep the TimeZone and the DateStyle that psql's would
    /// have, by libpq's environment, the URL, the role or the database. Otherwise they are UTC and
    /// ISO, whatever is configured there.
    pub own_times: bool,
    /// True if values given for generated columns are kept: PostgreSQL then accepts them for a
    /// column GENERATED ALWAYS AS IDENTITY too, and in MySQL a zero stays a zero.
    pub given_numbers: bool,
    /// For SQLite only: true if a name means the table of exactly this spelling. Otherwise case is
    /// ignored if that makes the name unambiguous.
    pub exact_names: bool,
    /// For SQLite only: how often the file is synced.
    pub synchronous: Synchronous,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_tables: false,
            extend_tables: false,
            received_at: None,
            lock_wait: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(5),
            trusted_functions: Vec::new(),
            own_times: false,
            given_numbers: false,
            exact_names: false,
            synchronous: Synchronous::Full,
        }
    }
}

/// SQLite's `PRAGMA synchronous` (<https://sqlite.org/pragma.html#pragma_synchronous>).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Every commit is on the disk before it is answered, and survives a power loss.
    #[default]
    Full,
    /// In WAL mode, commits may be lost at a power loss; the file stays consistent.
    Normal,
    /// Nothing is synced.
    Off,
}
