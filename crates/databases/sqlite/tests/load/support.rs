//! A SQLite file, a sink on it, its loaders, and its lane's own way beside them.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::Value as Stored;
use tempfile::TempDir;
use windrow_core::{Bulk, Database, Fault, Field, LoadPlan, Loader};
use windrow_database::{Driver, Options};
use windrow_sqlite::Sqlite;
use windrow_testkit::loads;
pub(crate) use windrow_testkit::loads::{on_conflict, plan, portion, refused, texts, written};

pub(crate) struct Db {
    // Dropped before the directory: the writer closes its file first.
    pub(crate) bulk: Arc<dyn Bulk>,
    pub(crate) sink: Arc<dyn Database>,
    dir: TempDir,
}

impl Db {
    /// A file with this schema.
    pub(crate) async fn new(schema: &str) -> Self {
        Self::with(schema, &Options::default()).await
    }

    pub(crate) async fn with(schema: &str, options: &Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("test.db").display());
        let sink = Driver::open(&Sqlite, &url, options).await.unwrap();
        let bulk = sink.bulk().unwrap();
        let db = Self { bulk, sink, dir };
        db.look().execute_batch(schema).unwrap();
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

    pub(crate) fn run(&self, sql: &str) {
        self.look().execute_batch(sql).unwrap();
    }

    /// All that a query gives.
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<Stored>> {
        let connection = self.look();
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect();
        let rows = statement.query_map([], row).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// A number that a query gives.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.look().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub(crate) async fn loader(&self, plan: &LoadPlan) -> Box<dyn Loader> {
        self.bulk.loader(plan).await.unwrap()
    }

    /// Writes rows as a lane does, each by itself.
    pub(crate) async fn alone(
        &self,
        plan: &LoadPlan,
        rows: &[Vec<Field<'_>>],
    ) -> Vec<Option<Fault>> {
        loads::alone(&*self.sink, plan, rows).await
    }
}
