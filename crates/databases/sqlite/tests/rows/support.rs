//! A SQLite file in a directory of its own, and short ways to say what is written into it.

use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tempfile::TempDir;
use windrow_core::{Fault, Unit, UnitOutcome, Write, WriteDone};
use windrow_database::{Driver, Options};
use windrow_sqlite::Sqlite;
use windrow_testkit::batches::Batches;
pub(crate) use windrow_testkit::writes::{
    Make, delete, get, insert, json, number, returned, update,
};

pub(crate) struct Db {
    // Dropped before the directory: the writer closes its file first.
    pub(crate) batches: Batches,
    pub(crate) dir: TempDir,
}

impl Db {
    /// A file with this schema.
    pub(crate) async fn new(schema: &str) -> Self {
        Self::with(schema, &Options::default()).await
    }

    /// A file in which tables are created from rows.
    pub(crate) async fn creating() -> Self {
        Self::with("", &creating()).await
    }

    pub(crate) async fn with(schema: &str, options: &Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("test.db").display());
        let sink = Driver::open(&Sqlite, &url, options).await.unwrap();
        let batches = Batches::on(sink).await;
        let db = Self { batches, dir };
        let schema = format!("PRAGMA synchronous = OFF; {schema}");
        db.look().execute_batch(&schema).unwrap();
        db
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("test.db")
    }

    /// A connection of another process, as it were.
    pub(crate) fn look(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection
            .busy_timeout(std::time::Duration::from_secs(20))
            .unwrap();
        connection
    }

    /// Executes one write alone.
    pub(crate) async fn one(&mut self, write: Write) -> Result<WriteDone, Fault> {
        self.batches.one(Unit::one(write)).await
    }

    /// The rows of a query, each as `a|b` with every value as SQL would write it.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        rows(&self.look(), sql)
    }
}

impl std::ops::Deref for Db {
    type Target = Batches;

    fn deref(&self) -> &Batches {
        &self.batches
    }
}

impl std::ops::DerefMut for Db {
    fn deref_mut(&mut self) -> &mut Batches {
        &mut self.batches
    }
}

pub(crate) fn creating() -> Options {
    Options {
        create_tables: true,
        ..Options::default()
    }
}

pub(crate) fn rows(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut out = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let cells: Vec<String> = (0..columns)
            .map(|i| match row.get_ref(i).unwrap() {
                ValueRef::Null => "NULL".into(),
                ValueRef::Integer(n) => n.to_string(),
                ValueRef::Real(x) => format!("{x:?}"),
                ValueRef::Text(t) => format!("'{}'", String::from_utf8_lossy(t)),
                ValueRef::Blob(b) => format!("x'{}'", hex(b)),
            })
            .collect();
        out.push(cells.join("|"));
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The row counts of a unit that succeeded.
pub(crate) fn counts(outcome: &UnitOutcome) -> Vec<u64> {
    let dones = outcome.as_ref().expect("the unit failed");
    dones.iter().map(|d| d.rows).collect()
}

/// The code of a unit that failed.
pub(crate) fn code(outcome: &UnitOutcome) -> &str {
    &outcome.as_ref().expect_err("the unit succeeded").fault.code
}

/// What each unit got, in short: its row counts or the code of its fault.
pub(crate) fn brief(outcomes: &[UnitOutcome]) -> Vec<String> {
    let one = |outcome: &UnitOutcome| match outcome {
        Ok(_) => format!("{:?}", counts(outcome)),
        Err(fault) => format!("{}@{}", fault.fault.code, fault.at),
    };
    outcomes.iter().map(one).collect()
}
