//! The rows that all experiments write: five columns with a primary key.

use std::fmt;
use std::io::Write;

use crate::number::as_f64;

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

/// The same time as [`AT`], in MySQL's words.
pub const MYSQL_AT: &str = "2026-01-01 00:00:00";

/// See [`AT`].
pub const NOTE: &str = "a note of thirty characters...";

/// One row. Unless something else is set, everything follows from its id.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The primary key.
    pub id: u64,
    /// The device that sent it.
    pub device: u64,
    /// The temperature.
    pub temperature: f64,
    /// The note.
    pub note: &'a str,
}

impl Reading<'static> {
    /// Returns the reading with this id.
    pub fn new(id: u64) -> Self {
        Self {
            id,
            device: id % 1000,
            temperature: 15.0 + as_f64(id % 100) / 10.0,
            note: NOTE,
        }
    }
}

/// A value of a statement.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A whole number.
    Int(u64),
    /// A floating-point number.
    Float(f64),
    /// A text, which has no quotation mark in it.
    Text(&'a str),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => n.fmt(f),
            Self::Float(x) => x.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Reading<'_> {
    /// Returns the values of the columns; `at` is the time in the database's words.
    pub fn values<'a>(&'a self, at: &'a str) -> [Value<'a>; 5] {
        [
            Value::Int(self.id),
            Value::Int(self.device),
            Value::Text(at),
            Value::Float(self.temperature),
            Value::Text(self.note),
        ]
    }

    /// Appends it as a JSON object.
    pub fn json(&self, out: &mut Vec<u8>) {
        let Self {
            id,
            device,
            temperature,
            note,
        } = self;
        // Writing into a Vec cannot fail.
        write!(
            out,
            r#"{{"id":{id},"device":{device},"at":"{AT}","temperature":{temperature},"note":"{note}"}}"#
        )
        .ok();
    }

    /// Appends it as a line of CSV.
    pub fn csv(&self, out: &mut Vec<u8>) {
        let Self {
            id,
            device,
            temperature,
            note,
        } = self;
        writeln!(out, "{id},{device},{AT},{temperature},{note}").ok();
    }
}

/// The same row by `pgbench`, which each client counts with `n` (begins at 0).
pub const PGBENCH_SCRIPT: &str = r"\set n :n + 1
\set id (:client_id + 1) * 100000000 + :n
\set device :id % 1000
\set temperature 15.0 + (:id % 100) / 10.0
insert into readings (id, device, at, temperature, note) values (:id, :device, :at, :temperature, :note);
";
