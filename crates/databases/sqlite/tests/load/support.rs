//! A SQLite file, a sink on it, its loaders, and its lane's own way beside them.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::Value as Stored;
use tempfile::TempDir;
use windrow_core::shape::ShapeParts;
use windrow_core::{
    Bulk, Fault, Field, Key, LoadFault, LoadPlan, Loaded, Loader, Name, OnConflict, Op, Purpose,
    Returning, Rows, Shape, Sink, TableName, Unit, Verdict, Write,
};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_sqlite::Sqlite;

pub(crate) struct Db {
    // Dropped before the directory: the writer closes its file first.
    pub(crate) bulk: Arc<dyn Bulk>,
    pub(crate) sink: Arc<dyn Sink>,
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
        let shape = Arc::new(Shape::new(ShapeParts {
            op: Op::Insert,
            table: plan.table.clone(),
            columns: plan.columns.clone(),
            key: plan.key.clone(),
            on_conflict: plan.on_conflict,
            returning: Returning::Nothing,
        }));
        let unit = |row: &Vec<Field<'_>>| {
            let values: Vec<_> = row.iter().map(Field::value).collect();
            Unit::one(Write::new(shape.clone(), values))
        };
        let units: Vec<Unit> = rows.iter().map(unit).collect();
        let mut executor = self.sink.connect(Purpose::Batches).await.unwrap();
        let report = executor.execute(&units).await;
        let told = |verdict| match verdict {
            Verdict::Told(outcome) => outcome.err().map(|fault| fault.fault),
            other => panic!("not told: {other:?}"),
        };
        report.verdicts.into_iter().map(told).collect()
    }
}

pub(crate) fn plan(table: &str, columns: &[&str]) -> LoadPlan {
    LoadPlan {
        table: TableName::parse(table).unwrap(),
        columns: columns.iter().map(|name| Name::from(*name)).collect(),
        on_conflict: OnConflict::Error,
        key: Key::Primary,
    }
}

pub(crate) fn on_conflict(plan: LoadPlan, on_conflict: OnConflict) -> LoadPlan {
    LoadPlan {
        on_conflict,
        ..plan
    }
}

/// A portion.
pub(crate) fn portion(rows: &[Vec<Field<'_>>]) -> Rows {
    let mut portion = Rows::new(rows.first().map_or(0, Vec::len));
    for (at, row) in rows.iter().enumerate() {
        assert!(portion.push(at as u64 + 1, row.iter().copied()));
    }
    portion
}

/// Rows of texts as CSV gives them; `NULL` is NULL.
pub(crate) fn texts(rows: &[&[&str]]) -> Rows {
    let mut portion = Rows::new(rows.first().map_or(0, |row| row.len()));
    for (at, row) in rows.iter().enumerate() {
        let fields = row.iter().map(|text| match *text {
            "NULL" => Field::Null,
            text => Field::Plain(text),
        });
        assert!(portion.push(at as u64 + 1, fields));
    }
    portion
}

pub(crate) fn written(written: u64) -> Loaded {
    Loaded {
        written,
        ignored: 0,
    }
}

pub(crate) fn refused(outcome: Result<Loaded, LoadFault>) -> Fault {
    match outcome {
        Err(LoadFault::Refused(fault)) => fault,
        other => panic!("not refused: {other:?}"),
    }
}
