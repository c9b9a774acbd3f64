//! A database to try, with a connection on it.

use std::sync::Arc;

use tokio::sync::Mutex;
use windrow_core::sink::Purpose;
use windrow_core::{Executor, Promise, Report, Sink, Unit, UnitOutcome, Value};
use windrow_database::Options;

use crate::grounds::Ground;
use crate::words::*;

/// A ground, its sink, and one connection for batches.
pub(crate) struct Bed {
    pub(crate) ground: Box<dyn Ground>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) executor: Box<dyn Executor>,
    /// Whoever looks what is there.
    other: Mutex<Option<Box<dyn Executor>>>,
}

impl Bed {
    /// `None`: the sink declares that it lacks one of the promises.
    pub(crate) async fn new(ground: Box<dyn Ground>, needs: &[Promise]) -> Option<Self> {
        let sink = ground.in_words(open(&ground.url()).await);
        // What a sink says of itself may depend on the server's own words.
        sink.ping().await.unwrap();
        if needs
            .iter()
            .any(|need| sink.profile().lack(*need).is_some())
        {
            return None;
        }
        let executor = sink.connect(Purpose::Batches).await.unwrap();
        Some(Self {
            ground,
            sink,
            executor,
            other: Mutex::default(),
        })
    }

    /// Another sink on the same ground, maybe by another way to it.
    pub(crate) async fn another(&self, url: &str, options: &Options) -> Arc<dyn Sink> {
        let sink = windrow::databases::open(url, options).await.unwrap();
        self.ground.in_words(sink)
    }

    pub(crate) async fn lay(&self, tables: &[Table]) {
        for table in tables {
            self.ground.lay(table).await;
        }
    }

    /// One batch.
    pub(crate) async fn batch(&mut self, units: &[Unit]) -> Report {
        let report = self.executor.execute(units).await;
        assert_eq!(report.verdicts.len(), units.len());
        report
    }

    /// One batch whose units are all told.
    pub(crate) async fn run(&mut self, units: &[Unit]) -> Vec<UnitOutcome> {
        let report = self.batch(units).await;
        assert!(report.usable);
        report.verdicts.into_iter().map(told).collect()
    }

    /// One batch of single writes that all succeed.
    pub(crate) async fn succeed(&mut self, units: &[Unit]) {
        for (unit, outcome) in units.iter().zip(self.run(units).await) {
            assert!(outcome.is_ok(), "{unit:?}: {outcome:?}");
        }
    }

    /// What anybody else sees of a row, by a connection of its own.
    pub(crate) async fn seen(&self, table: &str, key: impl Into<Value>) -> Option<Vec<Value>> {
        let mut other = self.other.lock().await;
        let mut executor = match other.take() {
            Some(executor) => executor,
            None => self.sink.connect(Purpose::Batches).await.unwrap(),
        };
        let read = get(table).unit(vec![key.into()]);
        let outcome = told(executor.execute(&[read]).await.verdicts.remove(0));
        let row = rows(done(&outcome)).pop();
        *other = Some(executor);
        row
    }
}

/// Opens a sink.
pub(crate) async fn open(url: &str) -> Arc<dyn Sink> {
    windrow::databases::open(url, &Options::default())
        .await
        .unwrap()
}
