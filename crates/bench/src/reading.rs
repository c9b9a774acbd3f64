//! The rows that all experiments write: five columns with a primary key.

use std::io::Write;

/// The table on PostgreSQL.
pub const POSTGRES_TABLE: &str = "create table readings (id bigint primary key, device int not null, \
     at timestamptz not null, temperature double precision, note text)";

/// The table on SQLite.
pub const SQLITE_TABLE: &str = "create table readings (id integer primary key, device integer not null, \
     at text not null, temperature real, note text)";

/// The table on MariaDB.
pub const MARIADB_TABLE: &str = "create table readings (id bigint primary key, device int not null, \
     at datetime not null, temperature double, note text)";

/// The columns of the table on CrateDB, where it has a schema.
pub const CRATEDB_COLUMNS: &str = "(id bigint primary key, device int not null, \
     at timestamp with time zone not null, temperature double precision, note text)";

/// The time and the note of every reading: the same for all, so that every program can write the
/// same rows.
pub const AT: &str = "2026-01-01T00:00:00Z";

/// See [`AT`].
pub const NOTE: &str = "a note of thirty characters...";

/// One row; everything follows from its id.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    id: u64,
}

impl Reading {
    /// The reading with this id.
    pub fn new(id: u64) -> Self {
        Self { id }
    }

    /// Returns the primary key.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The device that sent it.
    pub fn device(&self) -> u64 {
        self.id % 1000
    }

    /// Returns the temperature.
    pub fn temperature(&self) -> f64 {
        15.0 + crate::number::as_f64(self.id % 100) / 10.0
    }

    /// Appends it as a JSON object.
    pub fn json(&self, out: &mut Vec<u8>) {
        // Writing into a Vec cannot fail.
        write!(
            out,
            r#"{{"id":{},"device":{},"at":"{AT}","temperature":{},"note":"{NOTE}"}}"#,
            self.id,
            self.device(),
            self.temperature()
        )
        .ok();
    }

    /// Appends it as a line of CSV.
    pub fn csv(&self, out: &mut Vec<u8>) {
        writeln!(
            out,
            "{},{},{AT},{},{NOTE}",
            self.id,
            self.device(),
            self.temperature()
        )
        .ok();
    }
}

/// The same row by `pgbench`, which each client counts with `n` (begins at 0).
pub const PGBENCH_SCRIPT: &str = r"\set n :n + 1
\set id (:client_id + 1) * 100000000 + :n
\set device :id % 1000
\set temperature 15.0 + (:id % 100) / 10.0
insert into readings (id, device, at, temperature, note) values (:id, :device, :at, :temperature, :note);
";
