//! What the tests share: a database, a sink on it, and short words for writes.

use std::sync::atomic::{AtomicU32, Ordering};

use windrow_core::Value;
use windrow_database::{Driver, Options};
use windrow_testkit::arangodb::ArangoDb;
use windrow_testkit::batches::Batches;
use windrow_testkit::writes;
pub(crate) use windrow_testkit::writes::{
    Make, brief, fault, json, number, returned, rung, told, verdicts,
};

/// A collection name that no other test has.
fn collection() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("w_{}_{number}", std::process::id())
}

/// A database with one connection; collections are made from rows.
pub(crate) struct Bed {
    pub(crate) stand_in: Option<ArangoDb>,
    pub(crate) url: String,
    batches: Batches,
    /// The collection of the test.
    pub(crate) table: String,
}

pub(crate) fn creating() -> Options {
    Options {
        create_tables: true,
        ..Options::default()
    }
}

impl Bed {
    /// With a collection that holds nothing.
    pub(crate) async fn new() -> Self {
        let mut bed = match std::env::var("WINDROW_TEST_ARANGODB") {
            Ok(url) => Self::at(url, None, &creating()).await,
            Err(_) => Self::empty().await,
        };
        bed.make().await;
        bed
    }

    /// On the stand-in in any case.
    pub(crate) async fn stand_in() -> Self {
        let mut bed = Self::empty().await;
        bed.make().await;
        bed
    }

    /// On the stand-in, without a collection.
    async fn empty() -> Self {
        let stand_in = ArangoDb::start().await.unwrap();
        Self::at(stand_in.url(), Some(stand_in), &creating()).await
    }

    pub(crate) async fn at(url: String, stand_in: Option<ArangoDb>, options: &Options) -> Self {
        let sink = Driver::open(&windrow_arangodb::ArangoDb, &url, options)
            .await
            .unwrap();
        Self {
            stand_in,
            url,
            batches: Batches::on(sink).await,
            table: collection(),
        }
    }

    /// Makes the collection by a document that goes again.
    async fn make(&mut self) {
        let units = [
            self.insert(&["_key"]).unit(["first".into()]),
            self.delete().unit(["first".into()]),
        ];
        assert_eq!(brief(&self.outcomes(&units).await), ["1", "1"]);
    }

    pub(crate) fn kit(&self) -> &ArangoDb {
        self.stand_in.as_ref().unwrap()
    }

    /// A document by its key.
    pub(crate) async fn read(&mut self, key: &str, columns: &[&str]) -> Option<Vec<Value>> {
        let get = self.get().returning(columns).unit([key.into()]);
        returned(&self.one(get).await.unwrap()).pop()
    }

    pub(crate) fn insert(&self, columns: &[&str]) -> Make {
        writes::insert(&self.table, columns)
    }

    pub(crate) fn update(&self, columns: &[&str]) -> Make {
        writes::update(&self.table, columns)
    }

    pub(crate) fn delete(&self) -> Make {
        writes::delete(&self.table)
    }

    pub(crate) fn get(&self) -> Make {
        writes::get(&self.table)
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
