//! What the tests share: a database, a sink on it, and short words for writes.

use std::sync::Arc;

use windrow_core::sink::Purpose;
use windrow_core::{Done, Executor, Report, Sink, Unit, UnitOutcome};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;
use windrow_testkit::mariadb::{Database, shared};
pub(crate) use windrow_testkit::writes::{
    Make, delete, eventually, fault, get, insert, json, number, rung, told, unit, update, write,
};

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
        let sink = Driver::open(&Mysql, database.url(), options).await.unwrap();
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
        assert!(report.usable);
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

/// A session of its own, for locks and kills.
pub(crate) async fn session(url: &str) -> mysql_async::Conn {
    mysql_async::Conn::from_url(url).await.unwrap()
}
