//! A database to try, with a connection on it.

use std::sync::Arc;

use tokio::sync::Mutex;
use windrow_core::{Database, Executor, Promise, Value};
use windrow_database::Options;
use windrow_testkit::batches::Batches;

use crate::grounds::Ground;
use crate::words::*;

/// A ground, its sink, and one connection for batches.
pub(crate) struct Bed {
    pub(crate) ground: Box<dyn Ground>,
    batches: Batches,
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
            .any(|need| sink.profile().limitation(*need).is_some())
        {
            return None;
        }
        Some(Self {
            ground,
            batches: Batches::on(sink).await,
            other: Mutex::default(),
        })
    }

    /// Another sink on the same ground, maybe by another way to it.
    pub(crate) async fn another(&self, url: &str, options: &Options) -> Arc<dyn Database> {
        let sink = windrow::databases::open(url, options).await.unwrap();
        self.ground.in_words(sink)
    }

    pub(crate) async fn lay(&self, tables: &[Table]) {
        for table in tables {
            self.ground.lay(table).await;
        }
    }

    /// What anybody else sees of a row, by a connection of its own.
    pub(crate) async fn seen(&self, table: &str, key: impl Into<Value>) -> Option<Vec<Value>> {
        let mut other = self.other.lock().await;
        let mut executor = match other.take() {
            Some(executor) => executor,
            None => self.connect().await,
        };
        let read = get(table).of(vec![key.into()]);
        let outcome = told(executor.execute(&[read]).await.verdicts.remove(0));
        let row = rows(done(&outcome)).pop();
        *other = Some(executor);
        row
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

/// Opens a sink.
pub(crate) async fn open(url: &str) -> Arc<dyn Database> {
    windrow::databases::open(url, &Options::default())
        .await
        .unwrap()
}
