//! A stand-in for ArangoDB's HTTP API: collections, arrays of documents, tokens, in the words of
//! version 3.12. Documents are kept in memory.

mod run;
mod store;

use anyhow::Result;

use crate::web::{Mishap, Request, WebServer};
use store::Collections;

/// A running stand-in with the databases `_system` and `shop`. It ends when it is dropped.
pub struct ArangoDb {
    server: WebServer<Collections>,
}

impl ArangoDb {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> Result<Self> {
        let server = WebServer::start(Collections::default(), run::answer).await?;
        Ok(Self { server })
    }

    /// Returns the URL of its database `shop` for Windrow.
    pub fn url(&self) -> String {
        format!("arangodb://{}/shop", self.server.address())
    }

    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        self.server.address()
    }

    /// From now on each client must be this user, by password or by a token of that user.
    pub fn require(&self, user: &str, password: &str) {
        self.server.state().login = Some((user.to_owned(), password.to_owned()));
    }

    /// All tokens that were given have expired.
    pub fn expire(&self) {
        self.server.state().tokens += 1;
    }

    /// No two documents of the collection may have the same value there.
    pub fn unique(&self, collection: &str, attribute: &str) {
        let mut state = self.server.state();
        let found = state.collections.entry(collection.to_owned());
        found.or_default().unique.push(attribute.to_owned());
    }

    /// Writes of this key meet another one's.
    pub fn conflict(&self, key: &str) {
        self.server.state().conflicts.push(key.to_owned());
    }

    /// Has the next request for which the filter holds meet a fault, once.
    pub fn next(&self, filter: impl Fn(&Request) -> bool + Send + 'static, mishap: Mishap) {
        self.server.next(filter, mishap);
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Forgets the requests so far.
    pub fn clear(&self) {
        self.server.clear();
    }
}
