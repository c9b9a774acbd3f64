//! ArangoDB: the stand-in. A table is a collection, its key is `_key`, and columns are whatever
//! documents hold.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::Database;
use windrow_testkit::arangodb::ArangoDb;

use super::{Ground, host, post};
use crate::keyed::{Keyed, KeyedSink, Laid};
use crate::words::Table;

struct Arango {
    kit: ArangoDb,
    laid: Laid,
}

/// Collections of a database that others use as well would meet: so always the stand-in.
pub(crate) async fn start() -> Option<Box<dyn Ground>> {
    Some(Box::new(Arango {
        kit: ArangoDb::start().await.unwrap(),
        laid: Laid::default(),
    }))
}

#[async_trait]
impl Ground for Arango {
    fn url(&self) -> String {
        self.kit.url()
    }

    async fn lay(&self, table: &Table) {
        let at = format!("http://{}/_db/shop/_api/collection", self.kit.address());
        post(&at, &serde_json::json!({ "name": table.name })).await;
        for column in table.columns.iter().filter(|column| column.unique) {
            self.kit.unique(table.name, column.name);
        }
        let mut laid = self.laid.lock().unwrap();
        laid.insert(table.name.to_owned(), table.clone());
    }

    fn wire(&self) -> Option<String> {
        host(&self.kit.url())
    }

    async fn lock(&self, _: &str, _: i64) -> Option<Box<dyn Any + Send>> {
        None
    }

    fn in_words(&self, sink: Arc<dyn Database>) -> Arc<dyn Database> {
        Arc::new(KeyedSink {
            inner: sink,
            keyed: Keyed {
                key: "_key",
                laid: self.laid.clone(),
            },
        })
    }
}
