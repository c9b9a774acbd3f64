//! Batches on one connection of a database, as a lane sends them.

#![expect(clippy::unwrap_used, reason = "what tests use may panic as tests may")]

use std::sync::Arc;

use windrow_core::{Database, Executor, Fault, Purpose, Report, Unit, UnitOutcome, WriteDone};

use crate::writes::told;

/// A database with one connection for batches.
pub struct Batches {
    // Dropped before the database: a connection ends before what it belongs to.
    /// The connection.
    pub executor: Box<dyn Executor>,
    /// The database.
    pub sink: Arc<dyn Database>,
}

impl Batches {
    /// Opens the connection.
    pub async fn on(sink: Arc<dyn Database>) -> Self {
        let executor = sink.connect(Purpose::Batches).await.unwrap();
        Self { executor, sink }
    }

    /// Another connection for batches.
    pub async fn connect(&self) -> Box<dyn Executor> {
        self.sink.connect(Purpose::Batches).await.unwrap()
    }

    /// One batch, whose report has a verdict for each unit.
    pub async fn run(&mut self, units: &[Unit]) -> Report {
        let report = self.executor.execute(units).await;
        assert_eq!(report.verdicts.len(), units.len());
        report
    }

    /// Executes one batch and returns the outcomes of its units. The connection stays good.
    pub async fn outcomes(&mut self, units: &[Unit]) -> Vec<UnitOutcome> {
        let report = self.run(units).await;
        assert!(report.usable);
        report.verdicts.into_iter().map(told).collect()
    }

    /// One batch that succeeds throughout.
    pub async fn succeed(&mut self, units: &[Unit]) -> Vec<WriteDone> {
        let outcomes = self.outcomes(units).await;
        outcomes.into_iter().flat_map(Result::unwrap).collect()
    }

    /// One write alone.
    pub async fn one(&mut self, unit: Unit) -> Result<WriteDone, Fault> {
        let mut outcomes = self.outcomes(&[unit]).await;
        let mut dones = outcomes.remove(0).map_err(|failed| failed.fault)?;
        assert_eq!(dones.len(), 1);
        Ok(dones.remove(0))
    }
}
