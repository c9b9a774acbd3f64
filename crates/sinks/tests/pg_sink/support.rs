//! What the tests share: a database, a sink on it, and short words for writes.

use std::sync::Arc;

use tokio::time::Instant;
use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Done, Executor, Fault, Key, Name, OnConflict, Op, Report, Returning, Rung, Shape, Sink,
    TableName, Unit, UnitOutcome, Value, Verdict, Write,
};
use windrow_sinks::Options;
use windrow_testkit::postgres::{Database, shared};

/// A database with one connection for batches.
pub(crate) struct Bed {
    pub(crate) database: Database,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) executor: Box<dyn Executor>,
}

impl Bed {
    /// A fresh database in which this SQL has been run.
    pub(crate) async fn new(sql: &str) -> Self {
        Self::with(sql, &Options::default()).await
    }

    pub(crate) async fn with(sql: &str, options: &Options) -> Self {
        let database = shared().unwrap();
        database.exec(sql).unwrap();
        let sink = windrow_sinks::open(database.url(), options).await.unwrap();
        let executor = sink.connect(Purpose::Batches).await.unwrap();
        Self {
            database,
            sink,
            executor,
        }
    }

    pub(crate) async fn connect(&self) -> Box<dyn Executor> {
        self.sink.connect(Purpose::Batches).await.unwrap()
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.database.exec(sql).unwrap()
    }

    /// One batch, whose report has a verdict for each unit.
    pub(crate) async fn run(&mut self, units: &[Unit]) -> Report {
        let report = self.executor.execute(units).await;
        assert_eq!(report.verdicts.len(), units.len());
        report
    }

    /// One batch that is told its outcomes.
    pub(crate) async fn outcomes(&mut self, units: &[Unit]) -> Vec<UnitOutcome> {
        let report = self.run(units).await;
        if !report.usable {
            // Something ran of which nothing was proven.
            self.executor = self.connect().await;
        }
        report.verdicts.into_iter().map(told).collect()
    }

    /// One batch that succeeds throughout.
    pub(crate) async fn succeed(&mut self, units: &[Unit]) -> Vec<Done> {
        let outcomes = self.outcomes(units).await;
        outcomes
            .into_iter()
            .flat_map(|outcome| outcome.unwrap())
            .collect()
    }
}

pub(crate) fn told(verdict: Verdict) -> UnitOutcome {
    match verdict {
        Verdict::Told(outcome) => outcome,
        other => panic!("not told: {other:?}"),
    }
}

pub(crate) fn fault(outcome: &UnitOutcome) -> &Fault {
    &outcome.as_ref().unwrap_err().fault
}

pub(crate) fn rung(report: &Report, rung: Rung) -> u64 {
    let place = Rung::ALL.iter().position(|r| *r == rung).unwrap();
    report.tally.rungs[place]
}

/// A shape under construction.
#[derive(Clone)]
pub(crate) struct Make(ShapeParts);

pub(crate) fn names(names: &[&str]) -> Box<[Name]> {
    names.iter().map(|name| Name::from(*name)).collect()
}

fn make(op: Op, table: &str, columns: &[&str]) -> Make {
    Make(ShapeParts {
        op,
        table: TableName::parse(table).unwrap(),
        columns: names(columns),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    })
}

pub(crate) fn insert(table: &str, columns: &[&str]) -> Make {
    make(Op::Insert, table, columns)
}

pub(crate) fn update(table: &str, columns: &[&str]) -> Make {
    make(Op::Update, table, columns)
}

pub(crate) fn delete(table: &str) -> Make {
    make(Op::Delete, table, &[])
}

pub(crate) fn get(table: &str) -> Make {
    make(Op::Get, table, &[]).all()
}

impl Make {
    pub(crate) fn key(mut self, key: &[&str]) -> Self {
        self.0.key = Key::Columns(names(key));
        self
    }

    pub(crate) fn ignore(mut self) -> Self {
        self.0.on_conflict = OnConflict::Ignore;
        self
    }

    pub(crate) fn upsert(mut self) -> Self {
        self.0.on_conflict = OnConflict::Update;
        self
    }

    pub(crate) fn returning(mut self, columns: &[&str]) -> Self {
        self.0.returning = Returning::Columns(names(columns));
        self
    }

    pub(crate) fn all(mut self) -> Self {
        self.0.returning = Returning::All;
        self
    }

    pub(crate) fn shape(&self) -> Arc<Shape> {
        Arc::new(Shape::new(self.0.clone()))
    }
}

pub(crate) fn write(shape: &Arc<Shape>, row: Vec<Value>) -> Write {
    Write::new(shape.clone(), row)
}

pub(crate) fn unit(shape: &Arc<Shape>, row: Vec<Value>) -> Unit {
    Unit::one(write(shape, row))
}

/// A row of values of any kind.
#[macro_export]
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$(windrow_core::Value::from($value)),*] };
}

pub(crate) fn number(digits: &str) -> Value {
    Value::number(digits)
}

pub(crate) fn json(text: &str) -> Value {
    Value::Json(text.into())
}

/// Waits until a condition holds, at most half a minute.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed().as_secs() < 30, "never: {what}");
        tokio::task::yield_now().await;
    }
}
