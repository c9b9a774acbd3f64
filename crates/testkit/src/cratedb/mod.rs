//! A stand-in for CrateDB's HTTP endpoint: answers the statements of Windrow's sink as CrateDB 6
//! does, byte for byte where real answers are known. Rows are kept in memory; nothing but what the
//! sink says is understood.
//!
//! What it is true to: a bulk in which a value cannot be read is refused as a whole and stores
//! nothing; a row that fails in a bulk is `-2`; of each shard only failures among its first ten
//! rows carry their text; an update or delete of a missing row fails in a bulk and counts 0 alone.

mod cell;
mod run;
mod sql;
mod store;
mod write;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;

use crate::web::{Mishap, Request, Server};
use store::Store;

/// A running stand-in. It ends when it is dropped.
pub struct CrateDb {
    server: Server,
    store: Arc<Mutex<Store>>,
}

impl CrateDb {
    /// Starts it on a free port, with tables of so many shards.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(shards: u64) -> Result<Self> {
        let store = Arc::new(Mutex::new(Store::new(shards)));
        let shared = store.clone();
        let server = Server::start(move |request| {
            let mut store = shared.lock().unwrap_or_else(PoisonError::into_inner);
            run::answer(&mut store, request)
        })
        .await?;
        Ok(Self { server, store })
    }

    /// Its URL for Windrow.
    pub fn url(&self) -> String {
        format!("cratedb://{}", self.server.address())
    }

    /// From now on a user must show this header.
    pub fn require(&self, authorization: &str) {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.authorization = Some(authorization.to_owned());
    }

    /// From now on every row of a refused bulk is told its error, with status 200, as servers
    /// before 5.10.11 do.
    pub fn repeat_errors(&self) {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.repeats = true;
    }

    /// The next statement that begins so (after its quote in the body) meets this, once.
    pub fn next(&self, begins: &str, mishap: Mishap) {
        let begins = format!("{{\"stmt\":\"{begins}");
        self.server
            .next(move |request| request.body.starts_with(&begins), mishap);
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Forgets the requests so far.
    pub fn clear(&self) {
        self.server.clear();
    }
}
