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

use anyhow::Result;

use crate::web::{Mishap, Request, WebServer};
use store::Tables;

/// A running stand-in. It ends when it is dropped.
pub struct CrateDb {
    server: WebServer<Tables>,
}

impl CrateDb {
    /// Starts it on a free port, with tables of so many shards.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(shards: u64) -> Result<Self> {
        let server = WebServer::start(Tables::new(shards), run::answer).await?;
        Ok(Self { server })
    }

    /// Returns the URL for Windrow.
    pub fn url(&self) -> String {
        format!("cratedb://{}", self.server.address())
    }

    /// From now on a user must show this header.
    pub fn require(&self, authorization: &str) {
        self.server.state().authorization = Some(authorization.to_owned());
    }

    /// From now on every row of a refused bulk gets its error, with status 200, as servers before
    /// 5.10.11 answer.
    pub fn repeat_errors(&self) {
        self.server.state().repeats = true;
    }

    /// The next statement that begins so (after its quote in the body) meets this, once.
    pub fn next(&self, begins: &str, mishap: Mishap) {
        let begins = format!("{{\"stmt\":\"{begins}");
        self.server
            .next(move |request| request.body.starts_with(&begins), mishap);
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
