//! The settings of a sink.

use std::time::Duration;

use windrow_core::Name;

/// Settings of a sink. The defaults need no change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// True if a missing table is created from the first row that names it, and gets
    /// columns as later rows bring them. The type of a column that is there never changes.
    pub create_tables: bool,
    /// With `create_tables`: tables that Windrow did not make get columns too.
    pub extend_tables: bool,
    /// With `create_tables`: the column of a new table with the moment at which the database got
    /// the row, unless the first rows have a column of that name; `None` for no such column.
    pub received_at: Option<Name>,
    /// The longest wait of a write in a batch for a lock of another session. Then the write goes on
    /// alone, on a connection of its own. PostgreSQL's batches wait for a fifth of this time if
    /// they met locks lately.
    pub lock_wait: Duration,
    /// The longest time for opening a connection.
    pub connect_timeout: Duration,
    /// PostgreSQL only: functions, as `schema.name`, that look at nothing but their arguments or
    /// the row of their trigger and leave nothing behind. Writes that run them are joined
    /// though nothing is proven of them.
    pub trusted_functions: Vec<String>,
    /// PostgreSQL only: sessions keep the TimeZone and the DateStyle that psql's would have, by
    /// libpq's environment, the URL, the role or the database. Without it they are UTC and
    /// ISO, whatever is set there.
    pub own_times: bool,
    /// Values that are given for columns which the database counts up are kept: PostgreSQL takes
    /// them for a column GENERATED ALWAYS AS IDENTITY too, and in MySQL a zero stays a zero.
    pub given_numbers: bool,
    /// SQLite only: a name means the table that is spelled so. Otherwise it means the one that
    /// differs at most in the case of its letters, of which there is only one.
    pub exact_names: bool,
    /// SQLite only: how often the file is synced.
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
    /// Every commit is on disk before it is answered: survives power loss.
    #[default]
    Full,
    /// In WAL mode commits may be lost at power loss, the file stays consistent.
    Normal,
    /// Nothing is synced.
    Off,
}
