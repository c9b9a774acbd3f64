//! CockroachDB for tests: the one that [`SHARED_SERVER`] names, or a stand-in.
//!
//! The stand-in is a real, private PostgreSQL behind a proxy that speaks as CockroachDB does: it
//! says so in `version()` and in the parameters of the connection, refuses what CockroachDB
//! refuses, in its words, knows `UPSERT` and `unique_rowid()`, and restarts or loses transactions
//! when a test asks for that. The stand-in has neither CockroachDB's planner nor its types and
//! catalog: a test that passes here says that no statement uses what is documented to be missing.

mod back;
mod front;
mod line;
mod refusals;
mod shared;
mod stand_in;
mod upsert;

use anyhow::Result;

use crate::database::{TestDatabase, TestServer};
use crate::postgres;
pub use shared::Trouble;
pub use stand_in::{StandIn, StandInBuilder, VERSION};

/// The environment variable that names a CockroachDB for all tests to share, as the URL of a role
/// that may create databases.
pub const SHARED_SERVER: &str = "WINDROW_TEST_COCKROACHDB";

/// An empty database; dropped when this is dropped.
pub type CockroachDatabase = TestDatabase<StandIn>;

/// Makes a database on the server that [`SHARED_SERVER`] names, or else behind a stand-in. Needs a
/// tokio runtime, which must live as long as the database.
///
/// # Errors
/// The server cannot be reached, or PostgreSQL cannot be started.
pub async fn shared() -> Result<CockroachDatabase> {
    if let Some(database) = TestDatabase::on_shared()? {
        return Ok(database);
    }
    let stand_in = StandIn::builder().start().await?;
    let url = stand_in.url().to_owned();
    Ok(TestDatabase::on_private(stand_in, url))
}

impl TestServer for StandIn {
    const SHARED: &'static str = SHARED_SERVER;

    fn sql(url: &str, text: &str) -> Result<String> {
        postgres::psql(url, text)
    }

    fn creation(name: &str) -> String {
        format!("create database {name}")
    }

    fn removal(name: &str) -> String {
        format!("drop database {name} cascade")
    }

    fn direct(&self) -> Option<&str> {
        Some(self.behind().url())
    }
}
