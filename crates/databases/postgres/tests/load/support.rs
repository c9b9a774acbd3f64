//! What the tests share: a database, its bulk form, and short words for portions.

use std::sync::Arc;

use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Bulk, Executor, Fault, Field, Key, LoadFault, LoadPlan, Loaded, Loader, Mark, Name, OnConflict,
    Op, Returning, Rows, Shape, Sink, Span, TableName, Unit, UnitOutcome, Value, Verdict, Write,
};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_postgres::Postgres;
use windrow_testkit::postgres::{Database, shared};
pub(crate) use windrow_testkit::writes::eventually;

/// A database and its bulk form.
pub(crate) struct Bed {
    pub(crate) database: Database,
    pub(crate) sink: Arc<dyn Sink>,
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
    pub(crate) async fn at(url: String, database: Database) -> Self {
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

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.database.exec(sql).unwrap()
    }

    pub(crate) async fn loader(&self, plan: &LoadPlan) -> Box<dyn Loader> {
        self.bulk.loader(plan).await.unwrap()
    }

    pub(crate) async fn no_loader(&self, plan: &LoadPlan) -> Fault {
        match self.bulk.loader(plan).await {
            Ok(_) => panic!("a loader for {plan:?}"),
            Err(fault) => fault,
        }
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
        self.sink.connect(Purpose::Alone).await.unwrap()
    }
}

/// A row by itself.
pub(crate) async fn alone(
    executor: &mut dyn Executor,
    plan: &LoadPlan,
    fields: &[Field<'_>],
) -> UnitOutcome {
    let shape = Arc::new(Shape::new(ShapeParts {
        op: Op::Insert,
        table: plan.table.clone(),
        columns: plan.columns.clone(),
        key: plan.key.clone(),
        on_conflict: plan.on_conflict,
        returning: Returning::Nothing,
    }));
    let row: Vec<Value> = fields.iter().map(Field::value).collect();
    let unit = Unit::one(Write::new(shape, row));
    match executor.execute(&[unit]).await.verdicts.remove(0) {
        Verdict::Told(outcome) => outcome,
        other => panic!("not told: {other:?}"),
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

pub(crate) fn with(mut plan: LoadPlan, on_conflict: OnConflict) -> LoadPlan {
    plan.on_conflict = on_conflict;
    plan
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
