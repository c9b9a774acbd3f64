//! A stand-in for ArangoDB's HTTP API: collections, arrays of documents, tokens, in the words of
//! version 3.12. Documents are kept in memory.

mod run;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;

use crate::web::{Mishap, Request, Server};
use store::Store;

/// A running stand-in with the databases `_system` and `shop`. It ends when it is dropped.
pub struct ArangoDb {
    server: Server,
    store: Arc<Mutex<Store>>,
}

impl ArangoDb {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> Result<Self> {
        let store = Arc::new(Mutex::new(Store::default()));
        let shared = store.clone();
        let server = Server::start(move |request| {
            let mut store = shared.lock().unwrap_or_else(PoisonError::into_inner);
            run::answer(&mut store, request)
        })
        .await?;
        Ok(Self { server, store })
    }

    /// The URL of its database `shop` for Windrow.
    pub fn url(&self) -> String {
        format!("arangodb://{}/shop", self.server.address())
    }

    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        self.server.address()
    }

    /// From now on whoever asks must be this user, by password or by a token of it.
    pub fn require(&self, user: &str, password: &str) {
        self.store().login = Some((user.to_owned(), password.to_owned()));
    }

    /// All tokens that were given have expired.
    pub fn expire(&self) {
        self.store().tokens += 1;
    }

    /// No two documents of the collection may have the same value there.
    pub fn unique(&self, collection: &str, attribute: &str) {
        let found = self.store().collections.remove(collection);
        let mut found = found.unwrap_or_default();
        found.unique.push(attribute.to_owned());
        self.store()
            .collections
            .insert(collection.to_owned(), found);
    }

    /// Writes of this key meet another one's.
    pub fn conflict(&self, key: &str) {
        self.store().conflicts.push(key.to_owned());
    }

    /// The next request for which the filter holds meets this, once.
    pub fn next(&self, filter: impl Fn(&Request) -> bool + Send + 'static, mishap: Mishap) {
        self.server.next(filter, mishap);
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Forgets the requests so far.
    pub fn clear(&self) {
        self.server.clear();
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
