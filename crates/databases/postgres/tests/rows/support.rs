//! What the tests share: a database, a sink on it, and short words for writes.

use windrow_core::{Unit, UnitOutcome, WriteDone};
use windrow_database::{Driver, Options};
use windrow_postgres::Postgres;
use windrow_testkit::batches::Batches;
use windrow_testkit::postgres::{PostgresDatabase, shared};
pub(crate) use windrow_testkit::writes::{
    delete, eventually, fault, get, insert, json, number, rung, told, unit, update, write,
};

/// A database with one connection for batches.
pub(crate) struct Bed {
    pub(crate) database: PostgresDatabase,
    pub(crate) batches: Batches,
}

impl Bed {
    /// A fresh database in which this SQL has been run.
    pub(crate) async fn new(sql: &str) -> Self {
        Self::with(sql, &Options::default()).await
    }

    pub(crate) async fn with(sql: &str, options: &Options) -> Self {
        let database = shared().unwrap();
        database.exec(sql).unwrap();
        let sink = Driver::open(&Postgres, database.url(), options)
            .await
            .unwrap();
        Self {
            database,
            batches: Batches::on(sink).await,
        }
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.database.exec(sql).unwrap()
    }

    /// One batch that is told its outcomes. Where it ran something of which nothing was proven, the
    /// next one gets another connection.
    pub(crate) async fn outcomes(&mut self, units: &[Unit]) -> Vec<UnitOutcome> {
        let report = self.run(units).await;
        if !report.usable {
            self.executor = self.connect().await;
        }
        report.verdicts.into_iter().map(told).collect()
    }

    /// One batch that succeeds throughout.
    pub(crate) async fn succeed(&mut self, units: &[Unit]) -> Vec<WriteDone> {
        let outcomes = self.outcomes(units).await;
        outcomes
            .into_iter()
            .flat_map(|outcome| outcome.unwrap())
            .collect()
    }
}

impl std::ops::Deref for Bed {
    type Target = Batches;

    fn deref(&self) -> &Batches {
        &self.batches
    }
}

impl std::ops::DerefMut for Bed {
    fn deref_mut(&mut self) -> &mut Batches {
        &mut self.batches
    }
}
