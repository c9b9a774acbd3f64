//! What the tests share: a database, its bulk form, and short words for portions.

use std::sync::Arc;

use windrow_core::sink::Purpose;
use windrow_core::{
    Bulk, Executor, Fault, Field, LoadFault, LoadPlan, Loaded, Loader, Mark, Rows, Span, Unit,
    UnitOutcome, Value, Write,
};
use windrow_database::{Driver, Options};
use windrow_postgres::Postgres;
use windrow_testkit::left_out;
use windrow_testkit::loads;
use windrow_testkit::loads::WritePortion as _;
pub(crate) use windrow_testkit::loads::{on_conflict as with, plan, refused, written};
use windrow_testkit::postgres::{PostgresDatabase, shared};
pub(crate) use windrow_testkit::writes::eventually;
use windrow_testkit::writes::told;

/// A database and its bulk form.
pub(crate) struct Bed {
    pub(crate) database: PostgresDatabase,
    pub(crate) sink: Arc<dyn windrow_core::Database>,
    pub(crate) bulk: Arc<dyn Bulk>,
}

impl Bed {
    /// A fresh database in which this SQL has been run.
    pub(crate) async fn new(sql: &str) -> Self {
        let database = shared().unwrap();
        database.exec(sql).unwrap();
        Self::at(database.url().to_owned(), database).await
    }

    /// The same with another URL, of another role.
    pub(crate) async fn at(url: String, database: PostgresDatabase) -> Self {
        let sink = Driver::open(&Postgres, &url, &Options::default())
            .await
            .unwrap();
        let bulk = sink.bulk().unwrap();
        Self {
            database,
            sink,
            bulk,
        }
    }

    /// Returns true if the server has a type. Notes those that are left out.
    pub(crate) fn has_type(&self, of: &str) -> bool {
        let is_there = of != "numeric(3,-2)"
            || self
                .sql("select current_setting('server_version_num')::int >= 150000")
                .trim()
                == "t";
        if !is_there {
            left_out::note(
                "columns of the type numeric(3,-2): before PostgreSQL 15 there are none",
            );
        }
        is_there
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.database.exec(sql).unwrap()
    }

    pub(crate) async fn loader(&self, plan: &LoadPlan) -> Box<dyn Loader> {
        self.bulk.loader(plan).await.unwrap()
    }

    pub(crate) async fn no_loader(&self, plan: &LoadPlan) -> Fault {
        loads::no_loader(&*self.bulk, plan).await
    }

    /// One portion, on a connection of its own.
    pub(crate) async fn load(&self, plan: &LoadPlan, rows: &Rows) -> Result<Loaded, LoadFault> {
        let mut loader = self.loader(plan).await;
        let outcome = loader.load(rows, None).await;
        loader.close().await;
        outcome
    }

    /// A connection that writes rows by themselves, as a lane does.
    pub(crate) async fn executor(&self) -> Box<dyn Executor> {
        self.sink.connect(Purpose::LockWait).await.unwrap()
    }
}

/// A row by itself.
pub(crate) async fn alone(
    executor: &mut dyn Executor,
    plan: &LoadPlan,
    fields: &[Field<'_>],
) -> UnitOutcome {
    let shape = Arc::new(plan.shape());
    let row: Vec<Value> = fields.iter().map(Field::value).collect();
    let unit = Unit::one(Write::new(shape, row));
    told(executor.execute(&[unit]).await.verdicts.remove(0))
}

/// A portion of plain fields; `None` is NULL.
pub(crate) fn portion<const N: usize>(rows: &[[Option<&str>; N]]) -> Rows {
    let mut portion = Rows::new(N);
    for (row, line) in rows.iter().zip(1..) {
        let fields = row.iter().map(|f| f.map_or(Field::Null, Field::Plain));
        assert!(portion.push(line, fields));
    }
    portion
}

/// A portion of rows without NULL.
pub(crate) fn plain<const N: usize>(rows: &[[&str; N]]) -> Rows {
    let rows: Vec<[Option<&str>; N]> = rows.iter().map(|row| row.map(Some)).collect();
    portion(&rows)
}

pub(crate) fn mark(load: &str, first: u64, end: u64) -> Mark {
    Mark {
        load: load.into(),
        span: Span { first, end },
    }
}

pub(crate) fn hopeless(outcome: Result<Loaded, LoadFault>) -> Fault {
    match outcome {
        Err(LoadFault::Hopeless(fault)) => fault,
        other => panic!("not hopeless: {other:?}"),
    }
}

pub(crate) fn again(outcome: Result<Loaded, LoadFault>) -> Fault {
    match outcome {
        Err(LoadFault::Again(fault)) => fault,
        other => panic!("not to be tried again: {other:?}"),
    }
}

/// A session of its own.
pub(crate) async fn session(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}
